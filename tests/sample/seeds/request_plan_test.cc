// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/request_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/node_seeds.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ResolvedJob JobOfLists(int64_t batch_size) {
  ResolvedJob job;
  job.spec.split.clear();
  job.spec.batch_size = batch_size;
  job.spec.shuffle = false;
  return job;
}

// The explicit seeds of the request, if any.
std::optional<std::vector<int64_t>> SeedsOf(
    const absl::StatusOr<BatchRequest>& request) {
  EXPECT_TRUE(request.ok()) << request.status();
  if (!request.ok() || !request->explicit_seeds) return std::nullopt;
  return request->explicit_seeds->ids;
}

TEST(RequestPlanTest, EachEpochHasItsOwnList) {
  const auto plan = RequestPlan::OfLists(
      JobOfLists(2), {testing::Seeds{{5, 6, 7}}, testing::Seeds{{8, 9, 4}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->batch_count(), 2u);
  EXPECT_EQ(plan->seed_count(), 3);
  EXPECT_THAT(SeedsOf(plan->Request(0, 1, {})).value(), ElementsAre(7));
  EXPECT_THAT(SeedsOf(plan->Request(1, 0, {})).value(), ElementsAre(8, 9));
  const absl::Status status = plan->Request(2, 0, {}).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("epoch 2 has no list: only 2 epochs have one"));
}

TEST(RequestPlanTest, ASingleListServesAllEpochs) {
  const auto plan =
      RequestPlan::Create(JobOfLists(2), Manifest(), testing::Seeds{{5, 6, 7}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const uint32_t epoch : {0, 1, 1000}) {
    EXPECT_THAT(SeedsOf(plan->Request(epoch, 0, {})).value(),
                ElementsAre(5, 6));
  }
}

TEST(RequestPlanTest, ListsThatDoNotFitAreRefused) {
  EXPECT_FALSE(RequestPlan::OfLists(JobOfLists(2), {}).ok());
  const absl::Status uneven =
      RequestPlan::OfLists(JobOfLists(2),
                           {testing::Seeds{{1}}, testing::Seeds{{1, 2}}})
          .status();
  EXPECT_THAT(std::string(uneven.message()), HasSubstr("have 1 and 2 seeds"));
  ResolvedJob local = JobOfLists(2);
  local.spec.seed_order = SeedOrder::kLocal;
  const absl::Status of_list =
      RequestPlan::OfLists(local, {testing::Seeds{{1}}}).status();
  EXPECT_THAT(std::string(of_list.message()),
              HasSubstr("needs a split, not a list of seeds"));
}

}  // namespace
}  // namespace millrace
