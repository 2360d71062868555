// SPDX-License-Identifier: Apache-2.0
// Walks and PPR: the contents of their batches. walk_distribution_test.cc tests
// their distributions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/sample/digest.h"
#include "common/sample/draw/walks.h"
#include "tests/support/brute_force.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::BruteForce;
using testing::EdgesOf;
using ::testing::ElementsAre;
using testing::ExplicitJob;
using testing::Int64s;
using testing::OpenGraph;
using testing::RandomGraph;
using testing::Sample;
using testing::SampledEdge;
using testing::TestGraph;

JobSpec Walk(SampleMethod method, int walks, int length) {
  JobSpec spec = ExplicitJob({});
  spec.method = method;
  spec.walks = walks;
  spec.walk_length = length;
  return spec;
}

class WalkTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Partitions, WalkTest, ::testing::Values(0, 1, 3));

// This is pyg-lib's case of walks of 5 steps on a cycle of 4.
TEST_P(WalkTest, StepsOfACycleGoToNeighbors) {
  const auto source = OpenGraph(testing::Cycle(4), GetParam());
  const auto batch =
      Sample(*source, Walk(SampleMethod::kWalk, 1, 5), {{0, 1, 2, 3}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->walks.shape(), ElementsAre(4, 6));
  const auto walks = batch->walks.As<int32_t>();
  const auto original = Int64s(batch->nodes[0].original_id);
  for (int64_t walk = 0; walk < 4; ++walk) {
    EXPECT_EQ(original[walks[walk * 6]], walk);
    for (int64_t step = 0; step < 5; ++step) {
      const int64_t from = original[walks[walk * 6 + step]];
      const int64_t to = original[walks[walk * 6 + step + 1]];
      EXPECT_EQ((from + to) % 2, 1) << from << " to " << to;
    }
  }
}

// Edges as (list's node, step, walker, neighbour), computed only from the
// walks, in their expected order. One list per relation.
using WalkEdge = std::tuple<int64_t, int64_t, int64_t, int64_t>;
std::vector<std::vector<WalkEdge>> EdgesOfWalks(
    const Batch& batch, const std::vector<size_t>& metapath) {
  std::vector<std::vector<WalkEdge>> edges(batch.edges.size());
  const auto walks = batch.walks.As<int32_t>();
  const int64_t columns = batch.walks.shape()[1];
  for (int64_t walker = 0; walker < batch.walks.rows(); ++walker) {
    for (int64_t step = 0; step + 1 < columns; ++step) {
      const int64_t at = walker * columns + step;
      if (walks[at + 1] < 0) continue;
      edges[metapath[step % metapath.size()]].emplace_back(
          walks[at], step, walker, walks[at + 1]);
    }
  }
  for (auto& list : edges) std::sort(list.begin(), list.end());
  return edges;
}

TEST_P(WalkTest, EveryStepIsAnEdgeOfTheMetapath) {
  const TestGraph graph = RandomGraph(3);
  const auto source = OpenGraph(graph, GetParam());
  const Schema& schema = source->manifest().schema;
  int64_t checked = 0;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    // Walks start at items, so they follow buys, then likes over in-lists, and
    // the reverse over out-lists.
    const std::vector<size_t> metapath = direction == Direction::kIn
                                             ? std::vector<size_t>{2, 0, 1}
                                             : std::vector<size_t>{2, 1, 0};
    for (const bool disjoint : {false, true}) {
      for (const bool weighted : {false, true}) {
        JobSpec spec = Walk(SampleMethod::kWalk, 4, 7);
        spec.seed_type = "item";
        spec.direction = direction;
        spec.disjoint = disjoint;
        spec.weighted = weighted;
        for (const size_t r : metapath) {
          spec.metapath.push_back(schema.RelationName(static_cast<int>(r)));
        }
        const auto batch = Sample(*source, spec, {{4, 9, 4, 20}, {}});
        ASSERT_TRUE(batch.ok()) << batch.status();
        ASSERT_THAT(batch->walks.shape(), ElementsAre(16, 8));
        for (int64_t walker = 0; walker < 16; ++walker) {
          EXPECT_EQ(batch->walks.IntegerAt(walker * 8),
                    batch->seed_to_local.IntegerAt(walker / 4));
        }
        const BruteForce truth(graph, direction);
        const auto want = EdgesOfWalks(*batch, metapath);
        for (size_t r = 0; r < 3; ++r) {
          const auto edges =
              EdgesOf(*batch, schema, static_cast<RelationIndex>(r));
          ASSERT_EQ(edges.size(), want[r].size());
          for (size_t e = 0; e < edges.size(); ++e) {
            const auto& [owner, step, walker, neighbor] = want[r][e];
            const SampledEdge& edge = edges[e];
            EXPECT_EQ(edge.owner_local, owner);
            EXPECT_EQ(edge.neighbor_local, neighbor);
            EXPECT_EQ(batch->edges[r].hop.IntegerAt(e), step);
            EXPECT_EQ(edge.owner.tree, edge.neighbor.tree);
            EXPECT_EQ(edge.owner.tree, disjoint ? walker / 4 : 0);
            EXPECT_EQ(truth.Owner(r, edge.edge_id), edge.owner.original);
            EXPECT_EQ(truth.Neighbor(r, edge.edge_id), edge.neighbor.original);
            if (weighted) {
              EXPECT_GT(graph.relations[r].weight[edge.edge_id], 0);
            }
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 300);
}

// Node 0 leads to 1, and 1 to nowhere.
TEST_P(WalkTest, WalksEndAtEmptyLists) {
  TestGraph graph;
  graph.types = {{.count = 3}};
  graph.relations = {{.edges = {{1, 0}}}};
  const auto source = OpenGraph(graph, GetParam());
  const auto batch =
      Sample(*source, Walk(SampleMethod::kWalk, 2, 3), {{0, 1}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(
      std::vector<int32_t>(batch->walks.As<int32_t>().begin(),
                           batch->walks.As<int32_t>().end()),
      ElementsAre(0, 1, -1, -1, 0, 1, -1, -1, 1, -1, -1, -1, 1, -1, -1, -1));
  EXPECT_EQ(batch->edges[0].edge_count(), 2);
}

// In a cycle no node is adjacent to both ends of an edge, so with a large p and
// a small q walks go straight on.
TEST_P(WalkTest, LargePGoesRoundACycle) {
  const auto source = OpenGraph(testing::Cycle(64), GetParam());
  JobSpec spec = Walk(SampleMethod::kWalk, 20, 10);
  spec.walk_p = 1000;
  spec.walk_q = 0.001;
  const auto batch = Sample(*source, spec, {{0, 17, 40}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto walks = batch->walks.As<int32_t>();
  const auto original = Int64s(batch->nodes[0].original_id);
  int64_t turned = 0;
  for (int64_t at = 0; at < batch->walks.rows() * 11; ++at) {
    if (at % 11 < 2) continue;
    turned += original[walks[at]] == original[walks[at - 2]];
  }
  // Each of the 540 later steps turns with probability 10^-6 / (1 + 10^-6): a
  // false alarm in 1800 seeds.
  EXPECT_EQ(turned, 0);
}

// The draws of a biased job do not depend on partitions, even where whole lists
// have equal entries and loops; and p = q = 1 gives unbiased walks.
TEST_P(WalkTest, BiasedStepsAreEdgesAndTheSameEverywhere) {
  const TestGraph graph = RandomGraph(3);
  const auto source = OpenGraph(graph, GetParam());
  const auto whole = OpenGraph(graph, 0);
  const BruteForce truth(graph, Direction::kIn);
  JobSpec spec = Walk(SampleMethod::kWalk, 5, 8);
  spec.seed_type = "item";
  spec.metapath = {"item__cites__item"};
  for (const auto& [p, q] :
       {std::pair(0.2, 5.0), std::pair(8.0, 0.5), std::pair(1.0, 1.0)}) {
    spec.walk_p = p;
    spec.walk_q = q;
    const auto batch = Sample(*source, spec, {{4, 9, 4, 20}, {}});
    const auto other = Sample(*whole, spec, {{4, 9, 4, 20}, {}});
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(Hex(DigestBatch(*batch, source->manifest().schema)),
              Hex(DigestBatch(*other, whole->manifest().schema)));
    const auto edges = EdgesOf(*batch, source->manifest().schema, 2);
    EXPECT_GT(edges.size(), 20u);
    for (const SampledEdge& edge : edges) {
      EXPECT_EQ(truth.Owner(2, edge.edge_id), edge.owner.original);
      EXPECT_EQ(truth.Neighbor(2, edge.edge_id), edge.neighbor.original);
    }
  }
}

// Walks that never restart make the same draws as those of --method walk, so
// they visit the same nodes.
TEST_P(WalkTest, PprCountsTheVisitsOfWalks) {
  constexpr int kWalks = 30;
  const TestGraph graph = RandomGraph(3);
  const auto source = OpenGraph(graph, GetParam());
  const std::vector<int64_t> seeds = {4, 9, 11, 20};
  for (const bool weighted : {false, true}) {
    for (const int32_t fanout : {1, 3, 8, -1}) {
      JobSpec spec = Walk(SampleMethod::kWalk, kWalks, 5);
      spec.seed_type = "item";
      spec.weighted = weighted;
      spec.metapath = {"item__cites__item"};
      const auto walks = Sample(*source, spec, {seeds, {}});
      ASSERT_TRUE(walks.ok()) << walks.status();
      spec.method = SampleMethod::kPpr;
      spec.fanouts = {fanout};
      spec.restart = 0;
      const auto batch = Sample(*source, spec, {seeds, {}});
      ASSERT_TRUE(batch.ok()) << batch.status();
      const auto original = Int64s(walks->nodes[1].original_id);
      // (seed, neighbour, visits), in the expected order.
      std::vector<std::tuple<int64_t, int64_t, int64_t>> want, got;
      for (size_t s = 0; s < seeds.size(); ++s) {
        std::map<int64_t, int64_t> visits;
        std::vector<int64_t> order;  // nodes by first visit
        for (size_t at = s * kWalks * 6; at < (s + 1) * kWalks * 6; ++at) {
          const int32_t local = walks->walks.As<int32_t>()[at];
          if (at % 6 == 0 || local < 0 || original[local] == seeds[s]) continue;
          if (visits[original[local]]++ == 0) order.push_back(original[local]);
        }
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return visits[a] > visits[b];
        });
        if (fanout >= 0 && order.size() > static_cast<size_t>(fanout)) {
          order.resize(fanout);
        }
        for (const int64_t node : order) {
          want.emplace_back(seeds[s], node, visits[node]);
        }
      }
      const auto edges = EdgesOf(*batch, source->manifest().schema, 2);
      for (size_t e = 0; e < edges.size(); ++e) {
        EXPECT_EQ(edges[e].edge_id, -1);
        got.emplace_back(edges[e].owner.original, edges[e].neighbor.original,
                         batch->edges[2].visits.IntegerAt(e));
      }
      EXPECT_EQ(got, want) << "fanout " << fanout << " weighted " << weighted;
      EXPECT_GT(got.size(), 3u);
      EXPECT_EQ(batch->edges[0].edge_count(), 0);
      EXPECT_EQ(batch->edges[1].edge_count(), 0);
    }
  }
}

// A walk that always restarts visits only neighbours.
TEST_P(WalkTest, PprOfOneStepStaysNearby) {
  const TestGraph graph = RandomGraph(3);
  const auto source = OpenGraph(graph, GetParam());
  JobSpec spec = Walk(SampleMethod::kPpr, 50, 9);
  spec.seed_type = "item";
  spec.metapath = {"item__cites__item"};
  spec.fanouts = {-1};
  spec.restart = 1;
  const auto batch = Sample(*source, spec, {{4, 9, 20}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const BruteForce truth(graph, Direction::kIn);
  std::map<int64_t, int64_t> visits;
  const auto edges = EdgesOf(*batch, source->manifest().schema, 2);
  for (size_t e = 0; e < edges.size(); ++e) {
    const auto& [owner, neighbor, edge_id, owner_local, neighbor_local] =
        edges[e];
    visits[owner.original] += batch->edges[2].visits.IntegerAt(e);
    bool nearby = false;
    for (const int64_t edge : truth.List(2, owner.original, 100)) {
      nearby |= truth.Neighbor(2, edge) == neighbor.original;
    }
    EXPECT_TRUE(nearby) << owner.original << " to " << neighbor.original;
  }
  for (const auto& [seed, count] : visits) EXPECT_LE(count, 50);
}

TEST_P(WalkTest, PprHasNoEdgeFeatures) {
  const TestGraph graph = RandomGraph(3);
  const auto source = OpenGraph(graph, GetParam());
  JobSpec spec = Walk(SampleMethod::kPpr, 5, 2);
  spec.seed_type = "item";
  spec.metapath = {"item__cites__item"};
  spec.fanouts = {2};
  const absl::Status status =
      Sample(*source, spec, {{4}, {}}, 0, /*edge_features=*/true).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::HasSubstr("edge_features and method ppr cannot be used "
                           "together"));
}

}  // namespace
}  // namespace millrace
