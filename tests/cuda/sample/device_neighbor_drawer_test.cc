// SPDX-License-Identifier: Apache-2.0
// Draws that a CUDA device makes, compared with those of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cuda/runtime/device.h"
#include "common/cuda/sample/cuda_neighbor_drawer.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw_rule.h"
#include "common/tier/load_store.h"
#include "tests/support/sampled.h"
#include "tests/support/test_store.h"

namespace millrace::testing {
namespace {

// A graph that a device draws from, as a server does that has some partitions.
class DeviceNeighborDrawerTest : public ::testing::Test {
 protected:
  void Open(int parts, std::vector<int> mapped,
            MemoryTier tier = MemoryTier::kCuda,
            DeviceFallback fallback = DeviceFallback::kForbid) {
    stored_ = std::make_unique<TestStore>(RandomGraph(11), parts);
    loaded_ = LoadStore(stored_->Open(std::move(mapped)),
                        {.graph = tier, .fallback = fallback})
                  .value();
  }

  const Store& store() const { return *loaded_.store; }
  NeighborDrawer& drawer() const { return *loaded_.drawer; }
  const TopologySampler* sampler() const { return loaded_.sampler.get(); }

  // The nodes of a partition that have a relation's lists, some of them twice.
  std::vector<uint64_t> Owned(int part, RelationIndex relation,
                              Direction direction) const {
    const PartitionBook& book = store().book(
        ListOwnerType(store().schema().relations[relation], direction));
    std::vector<uint64_t> ids;
    for (uint64_t id = book.begin(part); id < book.end(part); ++id) {
      ids.push_back(id);
    }
    if (!ids.empty()) ids.push_back(ids.front());
    return ids;
  }

  void ExpectSame(int part, const DrawContext& context,
                  const Frontier& frontier) const {
    Picks expected, picks;
    // Draws append.
    picks.counts = expected.counts = {7};
    ASSERT_TRUE(DrawNeighbors(store(), part, context, frontier, expected).ok());
    const auto drawn = drawer().Draw(store(), part, context, frontier, picks);
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    ASSERT_TRUE(*drawn);
    EXPECT_EQ(picks.counts, expected.counts);
    EXPECT_EQ(picks.neighbors, expected.neighbors);
    EXPECT_EQ(picks.edge_ids, expected.edge_ids);
    EXPECT_EQ(picks.feature_rows, expected.feature_rows);
  }

  // Draws from all relations, with and without trees and times.
  void ExpectSameOfAllRelations(int part, DrawContext context,
                                int32_t fanout) const {
    const size_t relations = store().schema().relations.size();
    for (size_t r = 0; r < relations; ++r) {
      SCOPED_TRACE("relation " + std::to_string(r));
      Frontier frontier{.relation = static_cast<RelationIndex>(r),
                        .fanout = fanout};
      const std::vector<uint64_t> ids =
          Owned(part, frontier.relation, context.direction);
      if (ids.empty()) continue;
      std::vector<uint32_t> trees;
      std::vector<int64_t> times;
      for (size_t i = 0; i < ids.size(); ++i) {
        trees.push_back(static_cast<uint32_t>(i % 3));
        times.push_back(static_cast<int64_t>(i % 7) * 10);
      }
      frontier.ids = ids;
      ExpectSame(part, context, frontier);
      frontier.trees = trees;
      ExpectSame(part, context, frontier);
      frontier.times = times;
      ExpectSame(part, context, frontier);
    }
  }

 private:
  std::unique_ptr<TestStore> stored_;
  LoadedStore loaded_;
};

TEST_F(DeviceNeighborDrawerTest, DrawsWhatTheCpuDraws) {
  Open(/*parts=*/3, /*mapped=*/{0, 2});
  EXPECT_EQ(sampler(), nullptr) << "a partition is missing";
  uint32_t batch = 0;
  for (const int part : {0, 2}) {
    for (const DrawRule rule : {DrawRule::kUniform, DrawRule::kWeighted,
                                DrawRule::kLabor, DrawRule::kLast}) {
      for (const int32_t fanout : {-1, 1, 3, 40}) {
        for (const bool replace : {false, true}) {
          if (replace && !InfoOf(rule).takes_replace) continue;
          SCOPED_TRACE(static_cast<int>(rule) * 100 + fanout);
          ExpectSameOfAllRelations(part,
                                   {.job_seed = 5,
                                    .epoch = 2,
                                    .batch = batch++,
                                    .hop = 1,
                                    .rule = rule,
                                    .replace = replace,
                                    .edge_ids = true,
                                    .feature_rows = true},
                                   fanout);
        }
      }
    }
  }
}

TEST_F(DeviceNeighborDrawerTest, DrawsFromPinnedListsOfBothDirections) {
  Open(/*parts=*/2, /*mapped=*/{1}, MemoryTier::kPinned);
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    ExpectSameOfAllRelations(1, {.direction = direction, .feature_rows = true},
                             2);
  }
}

// The first neighbour of every second node, with and without times.
TEST_F(DeviceNeighborDrawerTest, LeavesExcludedEdgesOut) {
  Open(/*parts=*/2, /*mapped=*/{0});
  for (const bool timed : {false, true}) {
    for (const DrawRule rule :
         {DrawRule::kUniform, DrawRule::kWeighted, DrawRule::kLabor}) {
      for (const int32_t fanout : {-1, 2}) {
        const std::vector<uint64_t> ids = Owned(0, 0, Direction::kIn);
        Frontier frontier{.relation = 0, .fanout = -1, .ids = ids};
        Picks all;
        ASSERT_TRUE(DrawNeighbors(store(), 0, {}, frontier, all).ok());
        ExcludedEdges excluded;
        excluded.timed = timed;
        for (size_t i = 0, at = 0; i < ids.size(); at += all.counts[i++]) {
          if (i % 2 == 0 && all.counts[i] > 0) {
            excluded.Add(ids[i], all.neighbors[at], timed ? 10 : 0);
          }
        }
        excluded.Sort();
        frontier.fanout = fanout;
        frontier.excluded = &excluded;
        SCOPED_TRACE(static_cast<int>(rule));
        ExpectSame(0, {.rule = rule, .edge_ids = true}, frontier);
      }
    }
  }
}

TEST_F(DeviceNeighborDrawerTest, LeavesToTheCpuWhatHasNoKernels) {
  Open(/*parts=*/2, /*mapped=*/{0}, MemoryTier::kCuda, DeviceFallback::kAllow);
  const std::vector<uint64_t> ids = Owned(0, 0, Direction::kIn);
  Picks picks;
  const auto draw = [&](const DrawContext& context, int32_t fanout) {
    return drawer()
        .Draw(store(), 0, context,
              {.relation = 0, .fanout = fanout, .ids = ids}, picks)
        .value();
  };
  EXPECT_FALSE(draw({.walk = true}, 1));
  EXPECT_FALSE(draw({.rule = DrawRule::kAmong}, -1));
  EXPECT_FALSE(draw({}, 1025));
  EXPECT_TRUE(picks.counts.empty());
  EXPECT_TRUE(draw({}, 1024));
}

TEST_F(DeviceNeighborDrawerTest, RefusesWhatHasNoKernelsIfAsked) {
  Open(/*parts=*/1, /*mapped=*/{});
  const std::vector<uint64_t> ids = Owned(0, 0, Direction::kIn);
  Picks picks;
  const absl::Status status =
      drawer()
          .Draw(store(), 0, {.walk = true},
                {.relation = 0, .fanout = 1, .ids = ids}, picks)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("walks"));
}

TEST_F(DeviceNeighborDrawerTest, LeavesForeignNodesToTheCpu) {
  Open(/*parts=*/2, /*mapped=*/{0});
  const std::vector<uint64_t> ids = Owned(1, 0, Direction::kIn);
  ASSERT_FALSE(ids.empty());
  Picks picks;
  const auto drawn = drawer().Draw(
      store(), 0, {}, {.relation = 0, .fanout = 1, .ids = ids}, picks);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_FALSE(*drawn);
  EXPECT_TRUE(picks.counts.empty());
}

TEST_F(DeviceNeighborDrawerTest, DrawsInManyThreads) {
  Open(/*parts=*/1, /*mapped=*/{});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      for (uint32_t batch = 0; batch < 3; ++batch) {
        ExpectSameOfAllRelations(0, {.epoch = t, .batch = batch}, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace millrace::testing
