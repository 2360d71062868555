// SPDX-License-Identifier: Apache-2.0
// Batches of HopSampler, compared with those of SampleTopology(). A Queue also
// has what ThreadQueue (thread_queue.h) has for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/sample/store_lists.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/make_hop_filter.h"
#include "common/cuda/sample/make_hop_job.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/draw/seed_lists.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/local/mapped_neighbor_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace::testing {

// A node of a store.
struct NodePlace {
  int part = 0;
  int64_t row = 0;
};

inline NodePlace PlaceOf(const Store& store, TypeIndex type, int64_t original) {
  for (int p = 0; p < store.partition_count(); ++p) {
    const Array& originals = store.partition(p)->nodes[type].original_id;
    for (int64_t row = 0; row < originals.rows(); ++row) {
      if (originals.IntegerAt(row) == original) return {p, row};
    }
  }
  ADD_FAILURE() << "there is no node " << original;
  return {};
}

inline void AddNodes(const Store& store, TypeIndex type,
                     const std::vector<int64_t>& originals,
                     ResolvedNodes& nodes) {
  for (const int64_t original : originals) {
    const NodePlace place = PlaceOf(store, type, original);
    nodes.Add(store.book(type).begin(place.part) + place.row, original);
  }
}

// The seeds of a job by id: edges with the given times, or nodes with these or
// their own.
inline ResolvedSeeds SeedsOf(const ResolvedJob& job, const Store& store,
                             const ExplicitSeeds& seeds) {
  ResolvedSeeds resolved;
  resolved.times = seeds.times;
  if (job.seed_relation >= 0) {
    const Relation& relation = store.schema().relations[job.seed_relation];
    AddNodes(store, relation.src, seeds.ids, resolved);
    AddNodes(store, relation.dst, seeds.dst, resolved.dst);
    return resolved;
  }
  const TypeIndex type = job.seed_type;
  AddNodes(store, type, seeds.ids, resolved);
  if (job.spec.temporal == TemporalStrategy::kNone) {
    resolved.times.clear();
  } else if (seeds.times.empty()) {
    for (const int64_t original : seeds.ids) {
      const NodePlace place = PlaceOf(store, type, original);
      const Array& times = store.partition(place.part)->nodes[type].time;
      resolved.times.push_back(times.IntegerAt(place.row));
    }
  }
  return resolved;
}

// Asks for all columns.
inline TopologyRequest RequestFor(uint32_t batch) {
  return {.batch = batch, .edge_ids = true, .feature_rows = true};
}

// What HopSampler takes for a batch, with lists and sets in a queue's memory.
// All arguments but `lists` must outlive it.
template <typename Queue>
class QueueBatch {
 public:
  QueueBatch(Queue& queue, const Store& store, const StoreLists& lists,
             const ResolvedJob& job, const ResolvedSeeds& seeds,
             uint32_t batch = 0)
      : lists_(queue, lists),
        members_(queue, store, job.spec),
        job_(job),
        seeds_(seeds),
        seed_lists_(SeedLists(job, store.schema(), seeds)),
        hop_job_(cuda::MakeHopJob(job, store.manifest(), lists_.lists(),
                                  RequestFor(batch))) {
    cuda::AddFilters(job, store.schema(), seeds, members_.sets(), hop_job_);
  }
  QueueBatch(Queue& queue, const Store& store, const ResolvedJob& job,
             const ResolvedSeeds& seeds, uint32_t batch = 0)
      : QueueBatch(queue, store, StoreLists(store, job.spec.direction), job,
                   seeds, batch) {}

  cuda::HopJob& hop_job() { return hop_job_; }

  cuda::HopOutcome SampleOn(cuda::HopSampler<Queue>& sampler) const {
    std::vector<cuda::SeedNodes> nodes;
    for (const SeedList& list : seed_lists_) {
      nodes.push_back({list.type, list.ids, list.trees});
    }
    std::vector<int64_t> times;
    if (job_.spec.temporal != TemporalStrategy::kNone) times = seeds_.times;
    return sampler.Sample(hop_job_, nodes, times);
  }

 private:
  const QueueLists<Queue> lists_;
  const QueueMembers<Queue> members_;
  const ResolvedJob& job_;
  const ResolvedSeeds& seeds_;
  const std::vector<SeedList> seed_lists_;
  cuda::HopJob hop_job_;
};

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
                 const Schema& schema, const Batch& batch) {
  std::vector<int64_t> locals = Int64s(batch.seed_to_local);
  for (const int64_t local : Int64s(batch.edge_seeds.dst_local)) {
    locals.push_back(local);
  }
  EXPECT_EQ(Values(queue, sampler.seed_locals(), locals.size()), locals);
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
    const std::vector<uint32_t>& hop_offsets =
        batch.nodes[ListOwnerType(schema.relations[r], batch.direction)]
            .hop_offsets;
    ASSERT_EQ(edges.list_ends.size(), static_cast<size_t>(batch.hops) + 1);
    for (int hop = 0; hop <= batch.hops; ++hop) {
      EXPECT_EQ(edges.list_ends[hop],
                block.indptr.As<uint32_t>()[hop_offsets[hop]]);
    }
    EXPECT_EQ(edges.feature_row != nullptr, block.feature_row.present());
    if (edges.feature_row != nullptr) {
      EXPECT_EQ(Values(queue, edges.feature_row, edges.count),
                Int64s(block.feature_row));
    }
  }
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
                    const Store& store, const JobSpec& spec,
                    const ExplicitSeeds& seeds, uint32_t batch = 0) {
  const ResolvedJob job = ResolveJob(spec, store.manifest()).value();
  const ResolvedSeeds resolved = SeedsOf(job, store, seeds);
  const QueueBatch made(queue, store, job, resolved, batch);
  const uint64_t waits = queue.waits();
  const cuda::HopOutcome outcome = made.SampleOn(sampler);
  const auto waited = static_cast<int>(queue.waits() - waits);
  EXPECT_EQ(outcome, cuda::HopOutcome::kMade);
  if (outcome == cuda::HopOutcome::kMade) {
    ExpectEqual(queue, sampler, store.schema(),
                SampleOnCpu(job, store, resolved, batch));
  }
  return waited;
}

}  // namespace millrace::testing
