// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/seed_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/sample/draw/draw.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

JobSpec Job(int64_t batch_size) {
  JobSpec spec;
  spec.batch_size = batch_size;
  return spec;
}

std::vector<uint64_t> EpochPositions(const SeedSchedule& plan, uint32_t epoch) {
  std::vector<uint64_t> all;
  for (uint32_t b = 0; b < plan.batch_count(); ++b) {
    const auto batch = plan.Positions(epoch, b);
    EXPECT_TRUE(batch.ok()) << batch.status();
    all.insert(all.end(), batch->positions.begin(), batch->positions.end());
  }
  return all;
}

TEST(SeedScheduleTest, EveryPositionOncePerEpoch) {
  for (const int64_t seeds : {1, 2, 7, 255, 256, 257, 1000}) {
    for (const int64_t size : {1, 3, 256, 5000}) {
      const SeedSchedule plan(Job(size), {seeds});
      std::vector<uint64_t> all = EpochPositions(plan, 3);
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), seeds);
      for (int64_t i = 0; i < seeds; ++i) EXPECT_EQ(all[i], i);
    }
  }
}

TEST(SeedScheduleTest, EpochsHaveDifferentOrders) {
  const SeedSchedule plan(Job(10), {100});
  EXPECT_NE(EpochPositions(plan, 0), EpochPositions(plan, 1));
  EXPECT_EQ(EpochPositions(plan, 1), EpochPositions(plan, 1));
}

TEST(SeedScheduleTest, KeepsOrderWithoutShuffle) {
  JobSpec spec = Job(3);
  spec.shuffle = false;
  const SeedSchedule plan(spec, {5});
  EXPECT_THAT(plan.Positions(0, 0)->positions, ElementsAre(0, 1, 2));
  EXPECT_THAT(plan.Positions(0, 1)->positions, ElementsAre(3, 4));
}

TEST(SeedScheduleTest, DropLastLeavesOutTheShortBatch) {
  JobSpec spec = Job(3);
  spec.drop_last = true;
  EXPECT_EQ(SeedSchedule(spec, {5}).batch_count(), 1);
  EXPECT_EQ(SeedSchedule(spec, {6}).batch_count(), 2);
  EXPECT_EQ(SeedSchedule(spec, {2}).batch_count(), 0);
}

TEST(SeedScheduleTest, RefusesABatchBeyondTheEpoch) {
  const SeedSchedule plan(Job(3), {5});
  EXPECT_EQ(plan.Positions(0, 2).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(SeedSchedule(Job(3), {0}).Positions(0, 0).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(SeedScheduleTest, LocalOrderKeepsBatchesWithinOnePartition) {
  JobSpec spec = Job(4);
  spec.seed_order = SeedOrder::kLocal;
  const std::vector<int64_t> counts = {10, 0, 3, 9};
  const SeedSchedule plan(spec, counts);
  EXPECT_EQ(plan.batch_count(), 3 + 0 + 1 + 3);
  std::vector<std::set<uint64_t>> seen(counts.size());
  for (uint32_t b = 0; b < plan.batch_count(); ++b) {
    const auto batch = plan.Positions(1, b);
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->partition, plan.FindHome(1, b));
    for (const uint64_t position : batch->positions) {
      EXPECT_TRUE(seen[batch->partition].insert(position).second);
    }
  }
  for (size_t p = 0; p < counts.size(); ++p) {
    EXPECT_EQ(seen[p].size(), counts[p]) << p;
  }
}

// Otherwise the partitions would be read in the same order each time.
TEST(SeedScheduleTest, LocalBatchesAreInterleavedDifferentlyEachEpoch) {
  JobSpec spec = Job(1);
  spec.seed_order = SeedOrder::kLocal;
  const SeedSchedule plan(spec, {20, 20, 20});
  const auto homes = [&plan](uint32_t epoch) {
    std::vector<int> homes;
    for (uint32_t b = 0; b < plan.batch_count(); ++b) {
      homes.push_back(plan.FindHome(epoch, b));
    }
    return homes;
  };
  EXPECT_EQ(homes(1), homes(1));
  EXPECT_NE(homes(1), homes(2));
  EXPECT_FALSE(std::is_sorted(homes(1).begin(), homes(1).end()));
}

TEST(SeedScheduleTest, PartitionsOfOneSizeHaveTheirOwnOrders) {
  JobSpec spec = Job(20);
  spec.seed_order = SeedOrder::kLocal;
  const SeedSchedule plan(spec, {20, 20});  // one batch each
  const auto a = plan.Positions(0, 0);
  const auto b = plan.Positions(0, 1);
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_NE(a->partition, b->partition);
  EXPECT_NE(a->positions, b->positions);
  EXPECT_TRUE(std::is_permutation(a->positions.begin(), a->positions.end(),
                                  b->positions.begin()));
}

TEST(SeedScheduleTest, GlobalHomesRotate) {
  const SeedSchedule plan(Job(2), {5, 5, 5});
  EXPECT_EQ(plan.FindHome(0, 0), 0);
  EXPECT_EQ(plan.FindHome(0, 4), 1);
  EXPECT_EQ(plan.FindHome(9, 5), 2);
}

}  // namespace
}  // namespace millrace
