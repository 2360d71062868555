// SPDX-License-Identifier: Apache-2.0
// The tests of HopSampler with excluded edges and train graphs, for any Queue
// that has what hop_batches.h needs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/cuda/sample/hop_batches.h"
#include "tests/cuda/sample/hop_sampler_cases.h"
#include "tests/support/test_store.h"
#include "tests/support/variants.h"

namespace millrace::testing {

// Edges of a relation, of which most have others between the same nodes. Their
// times are those of the relation if it has any.
inline ExplicitSeeds RepeatedEdges(const TestRelation& relation) {
  std::map<std::pair<int64_t, int64_t>, int> counts;
  for (const auto& edge : relation.edges) ++counts[edge];
  ExplicitSeeds seeds;
  for (size_t e = 0; e < relation.edges.size() && seeds.size() < 12; ++e) {
    const auto& edge = relation.edges[e];
    if (counts[edge] < 2 && e % 20 != 0) continue;
    seeds.ids.push_back(edge.first);
    seeds.dst.push_back(edge.second);
    seeds.times.push_back(relation.time.empty() ? static_cast<int64_t>(e % 11)
                                                : relation.time[e]);
  }
  return seeds;
}

// Makes `spec` draw around edges of a relation, without these.
inline JobSpec AroundEdges(JobSpec spec, const TestRelation& relation,
                           ExcludeSeedEdges exclude) {
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = relation.src + "__" + relation.name + "__" + relation.dst;
  spec.exclude = exclude;
  spec.fanouts.resize(2);
  return spec;
}

// By every rule, also within a train graph: over the in-lists of a store, and
// the out-lists of a dataset.
template <typename Queue>
void MakesBatchesWithoutExcludedEdges(Direction direction) {
  const TestGraph graph = RandomGraph(11);
  const TestRelation& buys = graph.relations[0];
  const TestRelation& cites = graph.relations[2];
  const TestStore store(graph, direction == Direction::kIn ? 3 : 0);
  const auto opened = store.Open();
  Queue queue;
  cuda::HopSampler sampler(queue);
  int made = 0;
  for (const Variant& variant : SamplingVariants()) {
    if (variant.direction != direction || !HasKernels(variant.Job())) continue;
    SCOPED_TRACE(variant.name);
    const bool odd = ++made % 2 == 1;
    JobSpec spec = AroundEdges(variant.Job(), buys, ExcludeSeedEdges::kSelf);
    ExplicitSeeds seeds = RepeatedEdges(buys);
    // Without times, all edges between the ends of a seed are left out.
    if (odd && spec.temporal == TemporalStrategy::kNone) seeds.times.clear();
    ExpectSameBatch(queue, sampler, *opened, spec, seeds);
    if (odd) continue;
    spec = AroundEdges(variant.Job(), cites, ExcludeSeedEdges::kReverse);
    ExpectSameBatch(queue, sampler, *opened, spec, RepeatedEdges(cites));
  }
  EXPECT_GE(made, 14);
}

// Lists of which others leave out nothing, and one of which all is left out.
template <typename Queue>
void LeavesOutWholeLists() {
  TestGraph graph;
  graph.types = {{.count = 6}};
  graph.splits = {{.ids = {4, 5}}};
  graph.relations = {{.edges = {{1, 0}, {2, 0}, {3, 1}, {4, 3}, {5, 3}, {4, 2}},
                      .weight = {1, 2, 3, 4, 5, 6}}};
  const TestStore store(graph);
  const auto opened = store.Open();
  Queue queue;
  cuda::HopSampler sampler(queue);
  for (const int32_t fanout : {-1, 1, 2, 50}) {
    for (const bool weighted : {false, true}) {
      JobSpec spec = ExplicitJob({fanout, fanout});
      spec.weighted = weighted;
      spec.train_graph = "train";
      ExpectSameBatch(queue, sampler, *opened, spec, {{0, 1, 3, 5}});
      ExpectSameBatch(queue, sampler, *opened, spec, {{0, 1}});
      ExpectSameBatch(queue, sampler, *opened, spec, {{}});
      spec.train_graph = "";
      spec.seed_kind = SeedKind::kEdge;
      spec.exclude = ExcludeSeedEdges::kSelf;
      ExpectSameBatch(queue, sampler, *opened, spec,
                      {.ids = {1, 2, 4}, .dst = {0, 0, 3}});
    }
  }
}

// Two lists of which each warp filters more entries than it has lanes.
template <typename Queue>
void FiltersHubs() {
  constexpr int64_t kNodes = 4000;
  constexpr int64_t kEdges = 7000;
  TestGraph graph;
  graph.types = {{.count = kNodes}};
  graph.splits = {{}};
  for (int64_t v = 0; v < kNodes; v += 3) graph.splits[0].ids.push_back(v);
  graph.relations = {{}};
  for (int64_t i = 0; i < kEdges; ++i) {
    graph.relations[0].edges.emplace_back(i * i % 3989, i % 5 == 0 ? 1 : 0);
    graph.relations[0].weight.push_back(static_cast<float>(i % 11));
  }
  const TestStore store(graph);
  const auto opened = store.Open();
  Queue queue(64);
  cuda::HopSampler sampler(queue);
  for (const bool weighted : {false, true}) {
    JobSpec spec = ExplicitJob({100});
    spec.weighted = weighted;
    spec.train_graph = "train";
    ExpectSameBatch(queue, sampler, *opened, spec, {{2, 1, 0}});
  }
}

// The host waits once more for each hop whose lists are filtered.
template <typename Queue>
void WaitsForTheSizesOfFilteredLists() {
  const TestGraph graph = RandomGraph(2);
  const TestStore store(graph);
  const auto opened = store.Open();
  Queue queue;
  cuda::HopSampler sampler(queue);
  JobSpec spec = ExplicitJob({3, 2, 2}, "item");
  spec.train_graph = "train";
  EXPECT_EQ(ExpectSameBatch(queue, sampler, *opened, spec, {{1, 2}}), 4);
  // Only trees have seeds in later frontiers.
  spec = ExplicitJob({3, 2, 2}, "user__buys__item");
  spec.seed_kind = SeedKind::kEdge;
  spec.exclude = ExcludeSeedEdges::kSelf;
  const ExplicitSeeds seeds = RepeatedEdges(graph.relations[0]);
  EXPECT_EQ(ExpectSameBatch(queue, sampler, *opened, spec, seeds), 2);
  spec.disjoint = true;
  EXPECT_EQ(ExpectSameBatch(queue, sampler, *opened, spec, seeds), 4);
}

}  // namespace millrace::testing
