// SPDX-License-Identifier: Apache-2.0
// Which calls ask for rows and for the ids of original ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/remote/resolve_call.h"
#include "client/remote/row_call.h"
#include "common/graph/owner_groups.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMostIds = 1048576;  // of one call

TEST(OwnersOfTest, AreThoseOfTheFirstIds) {
  const PartitionBook book({0, 2, 5, 5, 9});
  const Array ids = Array::Adopt(std::vector<uint32_t>{8, 0, 1, 2, 4, 5, 3});
  EXPECT_THAT(OwnersOf(book, ids, 6), ElementsAre(3, 0, 0, 1, 1, 3));
  EXPECT_THAT(OwnersOf(book, ids, 0), IsEmpty());
}

TEST(SplitByOwnerTest, MakesARequestForEachOwner) {
  const Array ids = Array::Adopt(std::vector<uint64_t>{10, 11, 12, 13, 14});
  RowRequest like;
  like.type = 3;
  like.column = NodeColumn::kTime;
  like.target = Array::Allocate(DType::kInt64, {5});
  const std::vector<RowRequest> requests = SplitByOwner(
      std::vector<int>{2, 0, kNoOwner, 2, 0}, /*parts=*/3, ids, like);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].partition, 0);
  EXPECT_THAT(requests[0].ids, ElementsAre(11, 14));
  EXPECT_THAT(requests[0].rows, ElementsAre(1, 4));
  EXPECT_EQ(requests[1].partition, 2);
  EXPECT_THAT(requests[1].ids, ElementsAre(10, 13));
  EXPECT_THAT(requests[1].rows, ElementsAre(0, 3));
  for (const RowRequest& request : requests) {
    EXPECT_EQ(request.type, 3);
    EXPECT_EQ(request.column, NodeColumn::kTime);
    EXPECT_EQ(request.target.data(), like.target.data());
  }
}

// Partition 1 is asked for one id more than a call may have, partition 0 for
// one.
TEST(SplitByOwnerTest, NoCallAsksForTooMany) {
  std::vector<uint32_t> numbers(kMostIds + 2);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(2 * i);
  }
  std::vector<int> owners(numbers.size(), 1);
  owners[7] = 0;
  const std::vector<RowRequest> requests = SplitByOwner(
      owners, /*parts=*/2, Array::Adopt(std::move(numbers)), RowRequest());
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].partition, 1);
  EXPECT_EQ(requests[0].ids.size(), kMostIds);
  EXPECT_EQ(requests[0].rows.size(), kMostIds);
  EXPECT_EQ(requests[0].ids.back(), 2 * kMostIds);
  EXPECT_THAT(requests[1].ids, ElementsAre(14));
  EXPECT_EQ(requests[2].partition, 1);
  EXPECT_THAT(requests[2].ids, ElementsAre(2 * (kMostIds + 1)));
  EXPECT_THAT(requests[2].rows, ElementsAre(kMostIds + 1));
}

// Ten nodes in three partitions, whose lookup tables have 4, 4 and 2 of the
// original ids, regardless of which partition owns them.
class SplitByLookupTest : public ::testing::Test {
 protected:
  SplitByLookupTest() {
    manifest_.schema.node_types = {{.name = "venue", .count = 1},
                                   {.name = "paper", .count = 10}};
    manifest_.books = {PartitionBook({0, 1, 1, 1}),
                       PartitionBook({0, 1, 9, 10})};
  }

  absl::StatusOr<std::vector<ResolveRequest>> Split(
      const std::vector<int64_t>& original_ids) {
    return SplitByLookup(manifest_, /*type=*/1, original_ids, &target_);
  }

  Manifest manifest_;
  uint64_t target_ = 0;
};

TEST_F(SplitByLookupTest, AsksWhereTheTablesAre) {
  const auto requests = Split({9, 3, 4, 0, 8, 3});
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  for (int part = 0; part < 3; ++part) {
    EXPECT_EQ((*requests)[part].partition, part);
    EXPECT_EQ((*requests)[part].type, 1);
    EXPECT_EQ((*requests)[part].target, &target_);
  }
  EXPECT_THAT((*requests)[0].original_ids, ElementsAre(3, 0, 3));
  EXPECT_THAT((*requests)[0].positions, ElementsAre(1, 3, 5));
  EXPECT_THAT((*requests)[1].original_ids, ElementsAre(4));
  EXPECT_THAT((*requests)[1].positions, ElementsAre(2));
  EXPECT_THAT((*requests)[2].original_ids, ElementsAre(9, 8));
  EXPECT_THAT((*requests)[2].positions, ElementsAre(0, 4));
}

TEST_F(SplitByLookupTest, MakesNoRequestsForNoIds) {
  const auto requests = Split({});
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_THAT(*requests, IsEmpty());
}

TEST_F(SplitByLookupTest, NamesTheFirstIdThatIsOutOfRange) {
  for (const int64_t wrong : {int64_t{10}, int64_t{-1}, int64_t{1} << 40}) {
    const absl::Status status = Split({9, wrong, -7}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("seed " + std::to_string(wrong) +
                          " at position 1 is out of range; node type paper "
                          "has 10 nodes"));
  }
}

TEST_F(SplitByLookupTest, NoCallAsksForTooMany) {
  std::vector<int64_t> ids(kMostIds + 2, 5);
  ids[0] = 9;
  ids.back() = 6;
  const auto requests = Split(ids);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  const ResolveRequest& full = (*requests)[0];
  EXPECT_EQ(full.partition, 1);
  EXPECT_EQ(full.original_ids.size(), kMostIds);
  EXPECT_EQ(full.positions.size(), kMostIds);
  EXPECT_EQ(full.positions.back(), kMostIds);
  const ResolveRequest& rest = (*requests)[1];
  EXPECT_EQ(rest.partition, 1);
  EXPECT_EQ(rest.type, 1);
  EXPECT_EQ(rest.target, &target_);
  EXPECT_THAT(rest.original_ids, ElementsAre(6));
  EXPECT_THAT(rest.positions, ElementsAre(kMostIds + 1));
  EXPECT_THAT((*requests)[2].original_ids, ElementsAre(9));
}

}  // namespace
}  // namespace millrace
