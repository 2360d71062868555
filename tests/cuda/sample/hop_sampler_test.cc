// SPDX-License-Identifier: Apache-2.0
// HopSampler on CPU threads makes the batches of SampleTopology().
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/sample/draw/sampler.h"
#include "common/sample/local/mapped_neighbor_source.h"
#include "common/sample/resolve_job.h"
#include "tests/cuda/sample/store_lists.h"
#include "tests/support/variants.h"

namespace millrace::testing {
namespace {

using cuda::HopOutcome;
using cuda::HopSampler;

// The seeds of a node job by id, with times.
ResolvedSeeds SeedsOf(const ResolvedJob& job, const Store& store,
                      const Seeds& seeds) {
  ResolvedSeeds resolved;
  const TypeIndex type = job.seed_type;
  for (size_t i = 0; i < seeds.ids.size(); ++i) {
    for (int p = 0; p < store.partition_count(); ++p) {
      const Array& originals = store.partition(p)->nodes[type].original_id;
      for (int64_t row = 0; row < originals.rows(); ++row) {
        if (originals.IntegerAt(row) != seeds.ids[i]) continue;
        resolved.Add(store.book(type).begin(p) + row, seeds.ids[i]);
        const Array& times = store.partition(p)->nodes[type].time;
        if (!seeds.times.empty()) {
          resolved.times.push_back(seeds.times[i]);
        } else if (times.present()) {
          resolved.times.push_back(times.IntegerAt(row));
        }
      }
    }
  }
  if (job.spec.temporal == TemporalStrategy::kNone) resolved.times.clear();
  return resolved;
}

HopOutcome SampleOn(HopSampler<ThreadQueue>& sampler, const cuda::HopJob& job,
                    int seed_type, const ResolvedSeeds& seeds) {
  std::vector<uint32_t> trees(job.disjoint ? seeds.ids.size() : 0);
  std::iota(trees.begin(), trees.end(), 0u);
  const cuda::SeedNodes nodes{seed_type, seeds.ids, trees};
  return sampler.Sample(job, std::span(&nodes, 1), seeds.times);
}

template <typename T>
std::vector<int64_t> Values(const T* values, uint64_t count) {
  return {values, values + count};
}

void ExpectEqual(const HopSampler<ThreadQueue>& sampler, const Batch& batch) {
  EXPECT_EQ(Values(sampler.seed_locals(), batch.seed_to_local.rows()),
            Int64s(batch.seed_to_local));
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const NodeBlock& block = batch.nodes[t];
    const cuda::HopNodes nodes = sampler.nodes(static_cast<int>(t));
    ASSERT_EQ(nodes.hop_offsets, block.hop_offsets) << "type " << t;
    EXPECT_EQ(Values(nodes.ids, block.count()), Int64s(block.id));
    if (batch.disjoint) {
      EXPECT_EQ(Values(nodes.trees, block.count()), Int64s(block.tree));
    }
  }
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    const EdgeBlock& block = batch.edges[r];
    const cuda::HopEdges edges = sampler.edges(static_cast<int>(r));
    SCOPED_TRACE("relation " + std::to_string(r));
    ASSERT_EQ(edges.count, static_cast<uint64_t>(block.edge_count()));
    ASSERT_EQ(edges.expanded + 1, static_cast<uint64_t>(block.indptr.rows()));
    EXPECT_EQ(Values(edges.indptr, edges.expanded + 1), Int64s(block.indptr));
    EXPECT_EQ(Values(edges.neighbor, edges.count), Int64s(block.neighbor));
    EXPECT_EQ(Values(edges.edge_id, edges.count), Int64s(block.edge_id));
    EXPECT_EQ(edges.feature_row != nullptr, block.feature_row.present());
    if (edges.feature_row != nullptr) {
      EXPECT_EQ(Values(edges.feature_row, edges.count),
                Int64s(block.feature_row));
    }
  }
}

Batch SampleOnCpu(const ResolvedJob& job, const Store& store,
                  const ResolvedSeeds& seeds, uint32_t batch) {
  MappedNeighborSource source(store);
  return SampleTopology(
             job, store.manifest(),
             {.batch = batch, .edge_ids = true, .feature_rows = true}, seeds,
             source)
      .value();
}

// Makes a batch in both ways.
void ExpectSameBatch(HopSampler<ThreadQueue>& sampler, const Store& store,
                     const JobSpec& spec, const Seeds& seeds,
                     uint32_t batch = 0) {
  const ResolvedJob job = ResolveJob(spec, store.manifest()).value();
  const StoreLists lists(store, spec.direction);
  const ResolvedSeeds resolved = SeedsOf(job, store, seeds);
  const cuda::HopJob hop_job = HopJobFor(job, store, lists, batch);
  ASSERT_EQ(SampleOn(sampler, hop_job, job.seed_type, resolved),
            HopOutcome::kMade);
  ExpectEqual(sampler, SampleOnCpu(job, store, resolved, batch));
}

bool HasKernels(const JobSpec& spec) {
  return (spec.method == SampleMethod::kUniform ||
          spec.method == SampleMethod::kLabor) &&
         spec.train_graph.empty();
}

TEST(HopSamplerTest, MakesBatchesOfEveryVariant) {
  for (const int parts : {0, 3}) {
    const TestStore store(RandomGraph(7 + parts), parts);
    const auto opened = store.Open();
    ThreadQueue queue;
    HopSampler sampler(queue);
    int made = 0;
    for (const Variant& variant : SamplingVariants()) {
      const JobSpec spec = variant.Job();
      // With partitions, one direction is enough.
      if (parts > 0 && spec.direction == Direction::kOut) continue;
      if (!HasKernels(spec)) continue;
      for (const Seeds& seeds : SeedsFor(spec)) {
        SCOPED_TRACE(variant.name);
        ExpectSameBatch(sampler, *opened, spec, seeds, ++made);
      }
    }
    EXPECT_GE(made, 14);
  }
}

// Hops with all neighbours, without some relations, and with fanouts for which
// a node needs a block.
TEST(HopSamplerTest, MakesBatchesOfMixedFanouts) {
  const TestStore store(RandomGraph(3), 2);
  const auto opened = store.Open();
  ThreadQueue queue(64);
  HopSampler sampler(queue);
  for (const bool disjoint : {false, true}) {
    for (const bool weighted : {false, true}) {
      JobSpec spec = ExplicitJob({2, -1, 0, 40}, "item");
      spec.relation_fanouts["item__cites__item"] = {33, 0, 3, 0};
      spec.disjoint = disjoint;
      spec.weighted = weighted;
      ExpectSameBatch(sampler, *opened, spec, {{1, 1, 2}});
    }
  }
}

TEST(HopSamplerTest, MakesBatchesWithoutSeedsOrEdges) {
  TestGraph graph;
  graph.types = {{.count = 5}};
  graph.relations = {{.weight = {}}};
  const TestStore store(graph);
  const auto opened = store.Open();
  ThreadQueue queue;
  HopSampler sampler(queue);
  for (const int32_t fanout : {-1, 3, 50}) {
    ExpectSameBatch(sampler, *opened, ExplicitJob({fanout, fanout}), {{4, 0}});
    ExpectSameBatch(sampler, *opened, ExplicitJob({fanout, fanout}), {{}});
  }
}

// A node with a list of 5000 entries, of which many are equal.
TEST(HopSamplerTest, DrawsFromHubs) {
  TestGraph graph;
  graph.types = {{.count = 4000}};
  graph.relations = {{}};
  for (int64_t i = 0; i < 5000; ++i) {
    graph.relations[0].edges.emplace_back(i * i % 1009, i % 7 == 0 ? 1 : 0);
    graph.relations[0].weight.push_back(static_cast<float>(i % 11));
  }
  const TestStore store(graph);
  const auto opened = store.Open();
  ThreadQueue queue(64);
  HopSampler sampler(queue);
  for (const int32_t fanout : {1, 32, 33, 500, 1024}) {
    for (const auto& [method, weighted] :
         {std::pair(SampleMethod::kUniform, false),
          std::pair(SampleMethod::kUniform, true),
          std::pair(SampleMethod::kLabor, false)}) {
      JobSpec spec = ExplicitJob({fanout});
      spec.method = method;
      spec.weighted = weighted;
      SCOPED_TRACE(fanout);
      ExpectSameBatch(sampler, *opened, spec, {{0, 1}});
    }
  }
}

// The host waits only where it must allocate by what the device has found.
TEST(HopSamplerTest, WaitsOnceUnlessAllNeighborsAreTaken) {
  const TestStore store(RandomGraph(2));
  const auto opened = store.Open();
  ThreadQueue queue;
  HopSampler sampler(queue);
  ExpectSameBatch(sampler, *opened, ExplicitJob({3, 2, 2}, "item"), {{1, 2}});
  EXPECT_EQ(queue.waits(), 1);
  ExpectSameBatch(sampler, *opened, ExplicitJob({3, -1, 2}, "item"), {{1, 2}});
  EXPECT_EQ(queue.waits(), 3);
}

TEST(HopSamplerTest, SurvivesEveryFailedAllocation) {
  const TestStore store(RandomGraph(4));
  const auto opened = store.Open();
  const ResolvedJob job =
      ResolveJob(ExplicitJob({3, -1, 2}, "item"), opened->manifest()).value();
  const StoreLists lists(*opened, job.spec.direction);
  const cuda::HopJob hop_job = HopJobFor(job, *opened, lists, 0);
  const ResolvedSeeds seeds = SeedsOf(job, *opened, {{5, 6, 7}});
  ThreadQueue queue;
  int failures = 0;
  for (int n = 1;; ++n) {
    HopSampler sampler(queue);
    queue.FailAllocation(n);
    const HopOutcome outcome = SampleOn(sampler, hop_job, job.seed_type, seeds);
    if (queue.allocations() < n) break;
    ASSERT_EQ(outcome, HopOutcome::kNoMemory) << n;
    ++failures;
    if (n % 5 != 0) continue;
    queue.FailAllocation(0);
    ExpectSameBatch(sampler, *opened, job.spec, {{5, 6, 7}});
  }
  EXPECT_GT(failures, 20);
  EXPECT_EQ(queue.live(), 0);
}

// A graph whose lists a test can damage.
class DamagedListsTest : public ::testing::Test {
 protected:
  DamagedListsTest()
      : store_(RandomGraph(1)),
        opened_(store_.Open()),
        job_(ResolveJob(Spec(), opened_->manifest()).value()),
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

  static JobSpec Spec() {
    JobSpec spec = ExplicitJob({3, 3}, "item");
    spec.weighted = true;
    return spec;
  }

  // The trouble of a batch from the lists as they are now.
  uint32_t Trouble(cuda::PickRule rule, int32_t fanout = 3) {
    ThreadQueue queue;
    HopSampler sampler(queue);
    cuda::HopJob hop_job = HopJobFor(job_, *opened_, lists_, 0);
    hop_job.rule = rule;
    hop_job.relations[2].fanouts = {fanout, fanout};
    Seeds seeds;
    for (int64_t v = 0; v < 31; ++v) seeds.ids.push_back(v);
    const ResolvedSeeds resolved = SeedsOf(job_, *opened_, seeds);
    const HopOutcome outcome =
        SampleOn(sampler, hop_job, job_.seed_type, resolved);
    EXPECT_EQ(outcome, sampler.trouble() == 0 ? HopOutcome::kMade
                                              : HopOutcome::kTrouble);
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

constexpr cuda::PickRule kRules[] = {
    cuda::PickRule::kUniform, cuda::PickRule::kWeighted, cuda::PickRule::kLabor,
    cuda::PickRule::kLast};

TEST_F(DamagedListsTest, ReportsListsThatLeaveTheirFile) {
  const std::vector<int64_t> whole = indptr_;
  for (const cuda::PickRule rule : kRules) {
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

TEST_F(DamagedListsTest, ReportsNeighborsThatAreNotNodes) {
  for (uint32_t& neighbor : indices_) neighbor += 31;
  for (const cuda::PickRule rule : kRules) {
    EXPECT_EQ(Trouble(rule), cuda::kDamagedNeighbor);
    EXPECT_EQ(Trouble(rule, -1), cuda::kDamagedNeighbor);
  }
}

TEST_F(DamagedListsTest, StaysInListsWhoseWeightsDoNotAscend) {
  std::reverse(sums_.begin(), sums_.end());
  for (const int32_t fanout : {1, 3, 40}) {
    const uint32_t trouble = Trouble(cuda::PickRule::kWeighted, fanout);
    EXPECT_EQ(trouble & ~uint32_t{cuda::kOddWeights}, 0u);
  }
}

TEST_F(DamagedListsTest, ReportsIdsThatNoPartitionOwns) {
  part_.node_count -= 1;
  EXPECT_EQ(Trouble(cuda::PickRule::kUniform), cuda::kForeignId);
}

}  // namespace
}  // namespace millrace::testing
