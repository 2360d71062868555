// SPDX-License-Identifier: Apache-2.0
// Batches of HopSampler, compared with those of SampleTopology(). A Queue also
// has what ThreadQueue (thread_queue.h) has for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/sample/store_lists.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/make_hop_job.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/local/mapped_neighbor_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace::testing {

// The seeds of a node job by id, with times.
inline ResolvedSeeds SeedsOf(const ResolvedJob& job, const Store& store,
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

template <typename Queue>
cuda::HopOutcome SampleOn(cuda::HopSampler<Queue>& sampler,
                          const cuda::HopJob& job, int seed_type,
                          const ResolvedSeeds& seeds) {
  std::vector<uint32_t> trees(job.disjoint ? seeds.ids.size() : 0);
  std::iota(trees.begin(), trees.end(), 0u);
  const cuda::SeedNodes nodes{seed_type, seeds.ids, trees};
  return sampler.Sample(job, std::span(&nodes, 1), seeds.times);
}

// Values in the queue's memory.
template <typename Queue, typename T>
std::vector<int64_t> Values(Queue& queue, const T* values, uint64_t count) {
  std::vector<T> host(count);
  if (count > 0) {
    EXPECT_TRUE(queue.Download(host.data(), values, count * sizeof(T)));
  }
  return {host.begin(), host.end()};
}

template <typename Queue>
void ExpectEqual(Queue& queue, const cuda::HopSampler<Queue>& sampler,
                 const Batch& batch) {
  EXPECT_EQ(Values(queue, sampler.seed_locals(), batch.seed_to_local.rows()),
            Int64s(batch.seed_to_local));
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const NodeBlock& block = batch.nodes[t];
    const cuda::HopNodes nodes = sampler.nodes(static_cast<int>(t));
    ASSERT_EQ(nodes.hop_offsets, block.hop_offsets) << "type " << t;
    EXPECT_EQ(Values(queue, nodes.ids, block.count()), Int64s(block.id));
    if (batch.disjoint) {
      EXPECT_EQ(Values(queue, nodes.trees, block.count()), Int64s(block.tree));
    }
  }
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    const EdgeBlock& block = batch.edges[r];
    const cuda::HopEdges edges = sampler.edges(static_cast<int>(r));
    SCOPED_TRACE("relation " + std::to_string(r));
    ASSERT_EQ(edges.count, static_cast<uint64_t>(block.edge_count()));
    ASSERT_EQ(edges.expanded + 1, static_cast<uint64_t>(block.indptr.rows()));
    EXPECT_EQ(Values(queue, edges.indptr, edges.expanded + 1),
              Int64s(block.indptr));
    EXPECT_EQ(Values(queue, edges.neighbor, edges.count),
              Int64s(block.neighbor));
    EXPECT_EQ(Values(queue, edges.edge_id, edges.count), Int64s(block.edge_id));
    EXPECT_EQ(edges.feature_row != nullptr, block.feature_row.present());
    if (edges.feature_row != nullptr) {
      EXPECT_EQ(Values(queue, edges.feature_row, edges.count),
                Int64s(block.feature_row));
    }
  }
}

// Asks for all columns.
inline TopologyRequest RequestFor(uint32_t batch) {
  return {.batch = batch, .edge_ids = true, .feature_rows = true};
}

inline Batch SampleOnCpu(const ResolvedJob& job, const Store& store,
                         const ResolvedSeeds& seeds, uint32_t batch) {
  MappedNeighborSource source(store);
  return SampleTopology(job, store.manifest(), RequestFor(batch), seeds, source)
      .value();
}

// Makes a batch in both ways. Returns how often the host waited for the queue.
template <typename Queue>
int ExpectSameBatch(Queue& queue, cuda::HopSampler<Queue>& sampler,
                    const Store& store, const JobSpec& spec, const Seeds& seeds,
                    uint32_t batch = 0) {
  const ResolvedJob job = ResolveJob(spec, store.manifest()).value();
  const QueueLists lists(queue, StoreLists(store, spec.direction));
  const ResolvedSeeds resolved = SeedsOf(job, store, seeds);
  const cuda::HopJob hop_job =
      cuda::MakeHopJob(job, store.manifest(), lists.lists(), RequestFor(batch));
  const uint64_t waits = queue.waits();
  const cuda::HopOutcome outcome =
      SampleOn(sampler, hop_job, job.seed_type, resolved);
  const auto waited = static_cast<int>(queue.waits() - waits);
  EXPECT_EQ(outcome, cuda::HopOutcome::kMade);
  if (outcome == cuda::HopOutcome::kMade) {
    ExpectEqual(queue, sampler, SampleOnCpu(job, store, resolved, batch));
  }
  return waited;
}

}  // namespace millrace::testing
