// SPDX-License-Identifier: Apache-2.0
// FrontierDrawer and Downloads on CPU threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/downloads.cuh"
#include "common/cuda/sample/frontier_drawer.cuh"
#include "common/cuda/sample/make_draw_job.h"
#include "common/sample/draw/draw.h"
#include "tests/cuda/sample/store_lists.h"
#include "tests/support/sampled.h"
#include "tests/support/test_store.h"

namespace millrace::testing {
namespace {

template <typename T>
std::vector<T> Copy(const Array& array) {
  const std::span<const T> values = array.As<T>();
  return {values.begin(), values.end()};
}

class FrontierDrawerTest : public ::testing::Test {
 protected:
  static constexpr int kPart = 1;

  // The nodes of the partition that have lists of a relation.
  std::vector<uint64_t> Owned(RelationIndex relation) const {
    const PartitionBook& book = store_->book(
        ListOwnerType(store_->schema().relations[relation], Direction::kIn));
    std::vector<uint64_t> ids;
    for (uint64_t id = book.begin(kPart); id < book.end(kPart); ++id) {
      ids.push_back(id);
    }
    return ids;
  }

  cuda::DrawJob JobOf(const DrawContext& context, const Frontier& frontier) {
    cuda::Lists lists = lists_.lists()[frontier.relation];
    lists.parts += kPart;
    lists.part_count = 1;
    return cuda::MakeDrawJob(lists, *store_, context, frontier);
  }

  // Draws on the queue, and returns what came of it.
  cuda::HopOutcome Draw(const cuda::DrawJob& job, Picks& picks) {
    const cuda::HopOutcome started = drawer_.Start(job);
    if (started != cuda::HopOutcome::kMade) return started;
    Array offsets, neighbors;
    cuda::Downloads downloads(drawer_.counters());
    downloads.Add(drawer_.offsets(), DType::kUint64,
                  {.more = job.ids.size() + 1}, offsets);
    downloads.Add(drawer_.neighbors(), DType::kUint64, drawer_.picks(),
                  neighbors);
    downloads.Start(queue_, {std::shared_ptr<std::byte>(
                                new std::byte[downloads.pinned_bytes()],
                                std::default_delete<std::byte[]>())});
    if (downloads.counters()[0] != 0) return cuda::HopOutcome::kTrouble;
    downloads.Finish();
    const std::span<const uint64_t> ends = offsets.As<uint64_t>();
    for (size_t i = 0; i < job.ids.size(); ++i) {
      picks.counts.push_back(static_cast<uint32_t>(ends[i + 1] - ends[i]));
    }
    picks.neighbors = Copy<uint64_t>(neighbors);
    return cuda::HopOutcome::kMade;
  }

  void ExpectSame(const DrawContext& context, const Frontier& frontier) {
    Picks expected, picks;
    ASSERT_TRUE(
        DrawNeighbors(*store_, kPart, context, frontier, expected).ok());
    ASSERT_EQ(Draw(JobOf(context, frontier), picks), cuda::HopOutcome::kMade);
    EXPECT_EQ(picks.counts, expected.counts);
    EXPECT_EQ(picks.neighbors, expected.neighbors);
  }

  const std::shared_ptr<const Store> store_ =
      TestStore(RandomGraph(3), 2).Open();
  ThreadQueue queue_;
  const QueueLists<ThreadQueue> lists_{queue_,
                                       StoreLists(*store_, Direction::kIn)};
  cuda::FrontierDrawer<ThreadQueue> drawer_{queue_};
};

TEST_F(FrontierDrawerTest, DrawsWhatTheCpuDraws) {
  uint32_t batch = 0;
  for (const DrawRule rule : {DrawRule::kUniform, DrawRule::kWeighted,
                              DrawRule::kLabor, DrawRule::kLast}) {
    for (const int32_t fanout : {-1, 2, 40}) {
      for (RelationIndex r = 0; r < 2; ++r) {
        SCOPED_TRACE(std::to_string(static_cast<int>(rule)) + " " +
                     std::to_string(fanout));
        const std::vector<uint64_t> ids = Owned(r);
        ASSERT_FALSE(ids.empty());
        std::vector<uint32_t> trees;
        std::vector<int64_t> times;
        for (size_t i = 0; i < ids.size(); ++i) {
          trees.push_back(static_cast<uint32_t>(i % 3));
          times.push_back(static_cast<int64_t>(i % 5) * 10);
        }
        const DrawContext context = {.batch = batch++, .rule = rule};
        ExpectSame(context, {.relation = r, .fanout = fanout, .ids = ids});
        ExpectSame(context, {.relation = r,
                             .fanout = fanout,
                             .ids = ids,
                             .trees = trees,
                             .times = times});
      }
    }
  }
}

TEST_F(FrontierDrawerTest, LeavesExcludedEdgesOut) {
  const std::vector<uint64_t> ids = Owned(0);
  Picks all;
  ASSERT_TRUE(DrawNeighbors(*store_, kPart, {},
                            {.relation = 0, .fanout = -1, .ids = ids}, all)
                  .ok());
  ExcludedEdges excluded;
  for (size_t i = 0, at = 0; i < ids.size(); at += all.counts[i++]) {
    if (all.counts[i] > 0) excluded.Add(ids[i], all.neighbors[at], 0);
  }
  excluded.Sort();
  for (const int32_t fanout : {-1, 2}) {
    ExpectSame(
        {},
        {.relation = 0, .fanout = fanout, .ids = ids, .excluded = &excluded});
  }
}

TEST_F(FrontierDrawerTest, WaitsOnlyForSizesWithoutASmallBound) {
  const std::vector<uint64_t> ids = Owned(0);
  Picks picks;
  const auto waits_for = [&](int32_t fanout) {
    const uint64_t before = queue_.waits();
    EXPECT_EQ(
        Draw(JobOf({}, {.relation = 0, .fanout = fanout, .ids = ids}), picks),
        cuda::HopOutcome::kMade);
    return queue_.waits() - before;
  };
  EXPECT_EQ(waits_for(3), 0);
  EXPECT_EQ(waits_for(-1), 1);
}

TEST_F(FrontierDrawerTest, ReportsNodesOfOtherPartitions) {
  const std::vector<uint64_t> ids = {store_->book(0).begin(0)};
  Picks picks;
  EXPECT_EQ(Draw(JobOf({}, {.relation = 0, .fanout = 2, .ids = ids}), picks),
            cuda::HopOutcome::kTrouble);
}

}  // namespace
}  // namespace millrace::testing
