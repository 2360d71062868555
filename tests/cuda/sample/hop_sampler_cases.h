// SPDX-License-Identifier: Apache-2.0
// The tests of HopSampler, for any Queue that has what hop_batches.h needs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/sample/hop_batches.h"
#include "tests/support/test_store.h"
#include "tests/support/variants.h"

namespace millrace::testing {

inline bool HasKernels(const JobSpec& spec) {
  return spec.method == SampleMethod::kUniform ||
         spec.method == SampleMethod::kLabor;
}

template <typename Queue>
void MakesBatchesOfEveryVariant() {
  for (const int parts : {0, 3}) {
    const TestStore store(RandomGraph(7 + parts), parts);
    const auto opened = store.Open();
    Queue queue;
    cuda::HopSampler sampler(queue);
    int made = 0;
    for (const Variant& variant : SamplingVariants()) {
      const JobSpec spec = variant.Job();
      // With partitions, one direction is enough.
      if (parts > 0 && spec.direction == Direction::kOut) continue;
      if (!HasKernels(spec)) continue;
      for (const Seeds& seeds : SeedsFor(spec)) {
        SCOPED_TRACE(variant.name);
        ExpectSameBatch(queue, sampler, *opened, spec, seeds, ++made);
      }
    }
    EXPECT_GE(made, 19);
  }
}

// Hops with all neighbours, without some relations, and with fanouts for which
// a node needs a block.
template <typename Queue>
void MakesBatchesOfMixedFanouts() {
  const TestStore store(RandomGraph(3), 2);
  const auto opened = store.Open();
  Queue queue(64);
  cuda::HopSampler sampler(queue);
  for (const bool disjoint : {false, true}) {
    for (const bool weighted : {false, true}) {
      JobSpec spec = ExplicitJob({2, -1, 0, 40}, "item");
      spec.relation_fanouts["item__cites__item"] = {33, 0, 3, 0};
      spec.disjoint = disjoint;
      spec.weighted = weighted;
      ExpectSameBatch(queue, sampler, *opened, spec, {{1, 1, 2}});
    }
  }
}

template <typename Queue>
void MakesBatchesWithoutSeedsOrEdges() {
  TestGraph graph;
  graph.types = {{.count = 5}};
  graph.relations = {{.weight = {}}};
  const TestStore store(graph);
  const auto opened = store.Open();
  Queue queue;
  cuda::HopSampler sampler(queue);
  for (const int32_t fanout : {-1, 3, 50}) {
    ExpectSameBatch(queue, sampler, *opened, ExplicitJob({fanout, fanout}),
                    {{4, 0}});
    ExpectSameBatch(queue, sampler, *opened, ExplicitJob({fanout, fanout}),
                    {{}});
  }
}

// A node with a list of 5000 entries, of which many are equal.
template <typename Queue>
void DrawsFromHubs() {
  TestGraph graph;
  graph.types = {{.count = 4000}};
  graph.relations = {{}};
  for (int64_t i = 0; i < 5000; ++i) {
    graph.relations[0].edges.emplace_back(i * i % 1009, i % 7 == 0 ? 1 : 0);
    graph.relations[0].weight.push_back(static_cast<float>(i % 11));
  }
  const TestStore store(graph);
  const auto opened = store.Open();
  Queue queue(64);
  cuda::HopSampler sampler(queue);
  for (const int32_t fanout : {1, 32, 33, 500, 1024}) {
    for (const auto& [method, weighted] :
         {std::pair(SampleMethod::kUniform, false),
          std::pair(SampleMethod::kUniform, true),
          std::pair(SampleMethod::kLabor, false)}) {
      JobSpec spec = ExplicitJob({fanout});
      spec.method = method;
      spec.weighted = weighted;
      SCOPED_TRACE(fanout);
      ExpectSameBatch(queue, sampler, *opened, spec, {{0, 1}});
    }
  }
}

// The host waits only where it must allocate by what the device has found.
template <typename Queue>
void WaitsOnceUnlessAllNeighborsAreTaken() {
  const TestStore store(RandomGraph(2));
  const auto opened = store.Open();
  Queue queue;
  cuda::HopSampler sampler(queue);
  const auto waits = [&](const std::vector<int32_t>& fanouts) {
    return ExpectSameBatch(queue, sampler, *opened,
                           ExplicitJob(fanouts, "item"), {{1, 2}});
  };
  EXPECT_EQ(waits({3, 2, 2}), 1);
  EXPECT_EQ(waits({3, -1, 2}), 2);
}

template <typename Queue>
void SurvivesEveryFailedAllocation() {
  const TestStore store(RandomGraph(4));
  const auto opened = store.Open();
  JobSpec spec = ExplicitJob({2, -1}, "item");
  spec.weighted = true;
  spec.train_graph = "train";
  const ResolvedJob job = ResolveJob(spec, opened->manifest()).value();
  const ResolvedSeeds seeds = SeedsOf(job, *opened, {{5, 6, 7}});
  Queue queue;
  const QueueBatch made(queue, *opened, job, seeds);
  const int live = queue.live();
  int failures = 0;
  for (int n = 1;; ++n) {
    cuda::HopSampler sampler(queue);
    queue.FailAllocation(n);
    const cuda::HopOutcome outcome = made.SampleOn(sampler);
    if (queue.allocations() < n) break;
    ASSERT_EQ(outcome, cuda::HopOutcome::kNoMemory) << n;
    ++failures;
    if (n % 5 != 0) continue;
    queue.FailAllocation(0);
    ExpectSameBatch(queue, sampler, *opened, job.spec, {{5, 6, 7}});
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(queue.live(), live);
}

// A failed queue gives no memory, but that is not what is wrong with it.
template <typename Queue>
void SaysThatTheQueueHasFailed() {
  const TestStore store(RandomGraph(4));
  const auto opened = store.Open();
  const ResolvedJob job =
      ResolveJob(ExplicitJob({3, -1}, "item"), opened->manifest()).value();
  const ResolvedSeeds seeds = SeedsOf(job, *opened, {{5, 6, 7}});
  Queue queue;
  const QueueBatch made(queue, *opened, job, seeds);
  cuda::HopSampler used(queue), fresh(queue);
  EXPECT_EQ(made.SampleOn(used), cuda::HopOutcome::kMade);
  queue.Fail();
  EXPECT_TRUE(queue.failed());
  EXPECT_EQ(made.SampleOn(used), cuda::HopOutcome::kFailed);
  EXPECT_EQ(made.SampleOn(fresh), cuda::HopOutcome::kFailed);
}

inline constexpr DrawRule kRules[] = {DrawRule::kUniform, DrawRule::kWeighted,
                                      DrawRule::kLabor, DrawRule::kLast};

// A graph whose lists are damaged, and a job with a train graph, unless its
// name is empty.
template <typename Queue>
class DamagedLists {
 public:
  explicit DamagedLists(const std::string& train_graph = "")
      : store_(RandomGraph(1)),
        opened_(store_.Open()),
        job_(ResolveJob(Spec(train_graph), opened_->manifest()).value()),
        lists_(*opened_, Direction::kIn),
        part_(lists_.parts(2)[0]) {  // item__cites__item
    indptr_ = {part_.indptr, part_.indptr + part_.node_count + 1};
    indices_ = {
        static_cast<const uint32_t*>(part_.indices.data),
        static_cast<const uint32_t*>(part_.indices.data) + part_.edge_count};
    sums_ = {part_.weight_sums, part_.weight_sums + part_.edge_count};
    part_.indptr = indptr_.data();
    part_.indices.data = indices_.data();
    part_.weight_sums = sums_.data();
  }

  void ReportsListsThatLeaveTheirFile() {
    const std::vector<int64_t> whole = indptr_;
    for (const DrawRule rule : kRules) {
      for (const int64_t bad : {int64_t{-1}, part_.edge_count + 1,
                                int64_t{1} << 62, -(int64_t{1} << 62)}) {
        for (const size_t row : {size_t{0}, size_t{9}, whole.size() - 1}) {
          indptr_ = whole;
          indptr_[row] = bad;
          EXPECT_EQ(Trouble(rule, row == 9 ? -1 : 3), cuda::kDamagedIndptr);
        }
      }
      indptr_ = whole;
      EXPECT_EQ(Trouble(rule), 0u);
    }
  }

  void ReportsNeighborsThatAreNotNodes() {
    for (const uint32_t more : {31u, 0xF0000000u}) {
      for (uint32_t& neighbor : indices_) neighbor += more;
      for (const DrawRule rule : kRules) {
        EXPECT_EQ(Trouble(rule), cuda::kDamagedNeighbor);
        EXPECT_EQ(Trouble(rule, -1), cuda::kDamagedNeighbor);
      }
    }
  }

  void StaysInListsWhoseWeightsDoNotAscend() {
    std::reverse(sums_.begin(), sums_.end());
    for (const int32_t fanout : {1, 3, 40}) {
      const uint32_t trouble = Trouble(DrawRule::kWeighted, fanout);
      EXPECT_EQ(trouble & ~uint32_t{cuda::kOddWeights}, 0u);
    }
  }

  void ReportsIdsThatNoPartitionOwns() {
    part_.node_count -= 1;
    EXPECT_EQ(Trouble(DrawRule::kUniform), cuda::kForeignId);
  }

 private:
  static JobSpec Spec(const std::string& train_graph) {
    JobSpec spec = ExplicitJob({3, 3}, "item");
    spec.weighted = true;
    spec.train_graph = train_graph;
    return spec;
  }

  // The trouble of a batch from the lists as they are now.
  uint32_t Trouble(DrawRule rule, int32_t fanout = 3) {
    Queue queue;
    cuda::HopSampler sampler(queue);
    Seeds seeds;
    for (int64_t v = 0; v < 31; ++v) seeds.ids.push_back(v);
    const ResolvedSeeds resolved = SeedsOf(job_, *opened_, seeds);
    QueueBatch made(queue, *opened_, lists_, job_, resolved);
    made.hop_job().rule = rule;
    made.hop_job().relations[2].fanouts = {fanout, fanout};
    const cuda::HopOutcome outcome = made.SampleOn(sampler);
    EXPECT_EQ(outcome, sampler.trouble() == 0 ? cuda::HopOutcome::kMade
                                              : cuda::HopOutcome::kTrouble);
    return sampler.trouble();
  }

  const TestStore store_;
  const std::unique_ptr<Store> opened_;
  const ResolvedJob job_;
  StoreLists lists_;
  cuda::PartLists& part_;
  std::vector<int64_t> indptr_;
  std::vector<uint32_t> indices_;
  std::vector<uint64_t> sums_;
};

}  // namespace millrace::testing
