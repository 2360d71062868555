// SPDX-License-Identifier: Apache-2.0
// What kernels pick from lists of any length, against the rules of
// pick_slots.h.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/hop_sampler.cuh"
#include "common/sample/draw/pick_slots.h"

namespace millrace::testing {
namespace {

using cuda::HopOutcome;
using cuda::HopSampler;

constexpr uint64_t kFirstId = uint64_t{1} << 40;
constexpr uint64_t kNeighbors = uint64_t{1} << 41;

// Lists of nodes from kFirstId on, whose edge ids are their positions. The
// neighbours are of another type and have 64-bit ids.
struct Graph {
  std::vector<int64_t> indptr = {0};
  std::vector<uint64_t> indices, originals, sums, node_originals;
  std::vector<int64_t> edge_ids;

  void AddList(int64_t degree, std::mt19937_64& random) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < degree; ++i) {
      indices.push_back(random() % kNeighbors);
      // Some neighbours are equal.
      originals.push_back(i % 3 == 0 ? 7 : random());
      sum += random() % 3;
      sums.push_back(sum);
      edge_ids.push_back(static_cast<int64_t>(edge_ids.size()));
    }
    indptr.push_back(indptr.back() + degree);
    node_originals.push_back(random());
  }

  cuda::PartLists Lists() const {
    return {.first_id = kFirstId,
            .node_count = node_originals.size(),
            .edge_count = indptr.back(),
            .node_originals = {node_originals.data(), true},
            .indptr = indptr.data(),
            .indices = {indices.data(), true},
            .originals = {originals.data(), true},
            .weight_sums = sums.data(),
            .edge_ids = edge_ids.data()};
  }
};

DrawDomain DomainOf(const cuda::HopJob& job) {
  return {.job_seed = job.job_seed,
          .epoch = job.epoch,
          .batch = job.batch,
          .purpose = job.rule == DrawRule::kLabor ? Purpose::kLabor
                                                  : Purpose::kNeighbor};
}

std::vector<int64_t> PickedByCpu(const Graph& graph, const cuda::HopJob& job,
                                 int32_t fanout) {
  const DrawDomain domain = DomainOf(job);
  std::vector<int64_t> slots;
  std::vector<NumberedNode> ranks;
  for (size_t v = 0; v < graph.node_originals.size(); ++v) {
    const ListRange list = {graph.indptr[v],
                            graph.indptr[v + 1] - graph.indptr[v]};
    WordStream words(domain, domain.Key(), graph.node_originals[v], 0);
    switch (job.rule) {
      case DrawRule::kUniform:
        PickUniform(words, list, fanout, job.replace, slots);
        break;
      case DrawRule::kWeighted:
        PickWeighted(words, list, graph.sums, fanout, job.replace, slots);
        break;
      case DrawRule::kLabor:
        PickLabor(domain.Key(), 0, list,
                  std::span<const uint64_t>(graph.originals), fanout, ranks,
                  slots);
        break;
      case DrawRule::kLast:
        PickLast(list, fanout, slots);
        break;
      case DrawRule::kAmong:
        ADD_FAILURE() << "no kernel picks by it";
        break;
    }
  }
  return slots;
}

void ExpectSamePicks(const Graph& graph, DrawRule rule, bool replace,
                     int32_t fanout, unsigned block) {
  const cuda::PartLists part = graph.Lists();
  const cuda::HopJob job = {
      .node_counts = {kFirstId + part.node_count, kNeighbors},
      .relations = {{.list_type = 0,
                     .neighbor_type = 1,
                     .lists = {&part, 1, kNeighbors},
                     .fanouts = {fanout}}},
      .hops = 1,
      .rule = rule,
      .replace = replace,
      .edge_ids = true,
      .job_seed = uint64_t{1} << 50 | 3,
      .epoch = 2,
      .batch = static_cast<uint32_t>(fanout)};
  std::vector<uint64_t> ids;
  for (uint64_t v = 0; v < part.node_count; ++v) ids.push_back(kFirstId + v);
  const cuda::SeedNodes seeds{0, ids, {}};
  ThreadQueue queue(block);
  HopSampler sampler(queue);
  ASSERT_EQ(sampler.Sample(job, std::span(&seeds, 1), {}), HopOutcome::kMade);
  const cuda::HopEdges edges = sampler.edges(0);
  const std::vector<int64_t> picked(edges.edge_id, edges.edge_id + edges.count);
  EXPECT_EQ(picked, PickedByCpu(graph, job, fanout))
      << "rule " << static_cast<int>(rule) << (replace ? ", replace" : "")
      << ", fanout " << fanout;
  const cuda::HopNodes neighbors = sampler.nodes(1);
  for (uint64_t e = 0; e < edges.count; ++e) {
    ASSERT_EQ(neighbors.ids[edges.neighbor[e]],
              graph.indices[static_cast<size_t>(picked[e])]);
  }
}

void ExpectSamePicksByAllRules(const Graph& graph, int32_t fanout,
                               unsigned block) {
  for (const bool replace : {false, true}) {
    ExpectSamePicks(graph, DrawRule::kUniform, replace, fanout, block);
    ExpectSamePicks(graph, DrawRule::kWeighted, replace, fanout, block);
  }
  ExpectSamePicks(graph, DrawRule::kLabor, false, fanout, block);
  ExpectSamePicks(graph, DrawRule::kLast, false, fanout, block);
}

// Short lists make nearly every draw collide.
TEST(PickTest, PicksFromShortLists) {
  std::mt19937_64 random(1);
  Graph graph;
  for (int64_t degree = 0; degree <= 36; ++degree) {
    graph.AddList(degree, random);
  }
  for (const int32_t fanout : {-1, 1, 2, 3, 7, 15, 31, 32, 33, 35}) {
    ExpectSamePicksByAllRules(graph, fanout, 32);
  }
}

TEST(PickTest, PicksFromLongLists) {
  std::mt19937_64 random(2);
  Graph graph;
  for (const int64_t degree : {100, 0, 1025, 1200, 40, 2047, 2048, 3000}) {
    graph.AddList(degree, random);
  }
  for (const int32_t fanout : {20, 34, 90, 1000, 1024}) {
    ExpectSamePicksByAllRules(graph, fanout, 64);
  }
}

}  // namespace
}  // namespace millrace::testing
