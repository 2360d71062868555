// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/class_count.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "client/train/task/labels.h"
#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// The table of seeds 100, 101, ... with these labels.
SeedTable Table(const std::vector<int64_t>& labels) {
  const auto size = static_cast<int64_t>(labels.size());
  return {"split", at::arange(100, 100 + size, at::kLong),
          at::tensor(labels, at::kLong)};
}

std::vector<int64_t> Counting(int64_t count) {
  std::vector<int64_t> labels(static_cast<size_t>(count));
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

TEST(CountClassesTest, CountsToTheLargestLabelOfAllSplits) {
  const SeedTable train = Table({0, 3, kUnlabelled});
  const SeedTable valid = Table({5, 1});
  const SeedTable none = Table({});
  EXPECT_EQ(CountClasses({&train, &valid, nullptr}, 0).value(), 6);
  EXPECT_EQ(CountClasses({&train, &none}, 0).value(), 4);
  EXPECT_EQ(CountClasses({&none}, 0).value(), 0);
  EXPECT_EQ(CountClasses({}, 0).value(), 0);
  const SeedTable unlabelled = Table({kUnlabelled});
  EXPECT_EQ(CountClasses({&unlabelled}, 0).value(), 0);
}

// ImageNet's 21841 classes, all or only some of which occur.
TEST(CountClassesTest, AcceptsManyClassesThatOccur) {
  const SeedTable all = Table(Counting(21841));
  EXPECT_EQ(CountClasses({&all}, 0).value(), 21841);
  std::vector<int64_t> few = Counting(1400);
  few.push_back(21840);
  const SeedTable some = Table(few);
  EXPECT_EQ(CountClasses({&some}, 0).value(), 21841);
  const SeedTable small = Table({4095});
  EXPECT_EQ(CountClasses({&small}, 0).value(), 4096);
}

// At least 512 of 8192 classes must occur; missing labels do not count.
TEST(CountClassesTest, MissingLabelsAreNotAClass) {
  std::vector<int64_t> labels = Counting(511);
  labels.push_back(8191);
  const SeedTable enough = Table(labels);
  EXPECT_EQ(CountClasses({&enough}, 0).value(), 8192);
  labels.front() = kUnlabelled;
  const SeedTable few = Table(labels);
  EXPECT_TRUE(absl::IsFailedPrecondition(CountClasses({&few}, 0).status()));
}

TEST(CountClassesTest, RefusesSentinels) {
  for (const int64_t sentinel : {int64_t{65535}, int64_t{10'000'000},
                                 std::numeric_limits<int64_t>::max()}) {
    const SeedTable train = Table({0, 1, sentinel, 7, sentinel});
    const absl::Status status = CountClasses({&train}, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("node 102 has the label " + std::to_string(sentinel) +
                  ", but only 4 different labels occur; labels above 4095 "
                  "count as classes only if at least one class in 16 "
                  "occurs"));
    EXPECT_EQ(ReasonOf(status), "classes_with_gaps");
  }
}

TEST(CountClassesTest, UsesTheGivenClassCount) {
  const SeedTable train = Table({0, 1, 21840});
  EXPECT_EQ(CountClasses({&train}, 21841).value(), 21841);
  EXPECT_EQ(CountClasses({&train}, 30000).value(), 30000);
  const absl::Status status = CountClasses({&train}, 21840).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("classes 21840: node 102 has the label 21840, but "
                        "classes are 0 to 21839"));
  EXPECT_EQ(ReasonOf(status), "label_beyond_classes");
}

}  // namespace
}  // namespace millrace
