// SPDX-License-Identifier: Apache-2.0
// Induced subgraphs, compared with brute force over all edges.
#include "common/sample/draw/induced.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/brute_force.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::BruteForce;
using testing::EdgesOf;
using ::testing::ElementsAre;
using testing::ExplicitJob;
using testing::Int64s;
using testing::NodesOf;
using testing::OpenGraph;
using testing::RandomGraph;
using testing::Sample;
using testing::SampledEdge;
using testing::SampledNode;
using testing::Seeds;
using testing::TestGraph;

JobSpec Induced(Fanouts fanouts, std::string seed_type = "") {
  JobSpec spec = ExplicitJob(std::move(fanouts), std::move(seed_type));
  spec.method = SampleMethod::kInduced;
  return spec;
}

// (local id of the list's node, local id of the neighbour, edge id).
using LocalEdge = std::tuple<int64_t, int64_t, int64_t>;

// All edges among the nodes of a batch, in the order of the lists.
std::vector<LocalEdge> Among(const BruteForce& truth, size_t relation,
                             const std::vector<SampledNode>& owners,
                             const std::vector<SampledNode>& neighbors,
                             const std::vector<int64_t>& times) {
  std::map<SampledNode, int64_t> local;
  for (size_t i = 0; i < neighbors.size(); ++i) {
    local[neighbors[i]] = static_cast<int64_t>(i);
  }
  std::vector<LocalEdge> edges;
  for (size_t v = 0; v < owners.size(); ++v) {
    const auto [original, tree] = owners[v];
    const int64_t time =
        times.empty() ? std::numeric_limits<int64_t>::max() : times[tree];
    for (const int64_t e : truth.List(relation, original, time)) {
      const auto found = local.find({truth.Neighbor(relation, e), tree});
      if (found != local.end()) edges.emplace_back(v, found->second, e);
    }
  }
  return edges;
}

// Expects a batch to have the nodes of the same job without kInduced, and all
// edges among them.
void ExpectInduced(const LocalBatchSource& source, const TestGraph& graph,
                   const JobSpec& spec, const Seeds& seeds,
                   int64_t& edge_count) {
  const Schema& schema = source.manifest().schema;
  JobSpec hops = spec;
  hops.method = SampleMethod::kUniform;
  const auto batch = Sample(source, spec, seeds);
  const auto plain = Sample(source, hops, seeds);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE(plain.ok()) << plain.status();
  const BruteForce truth(graph, spec.direction);
  for (size_t t = 0; t < graph.types.size(); ++t) {
    const auto type = static_cast<TypeIndex>(t);
    EXPECT_EQ(NodesOf(*batch, type), NodesOf(*plain, type));
    EXPECT_EQ(batch->nodes[t].hop_offsets, plain->nodes[t].hop_offsets);
  }
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const auto index = static_cast<RelationIndex>(r);
    const Relation& relation = schema.relations[index];
    const auto owners =
        NodesOf(*batch, ListOwnerType(relation, spec.direction));
    std::vector<LocalEdge> got;
    for (const SampledEdge& edge : EdgesOf(*batch, schema, index)) {
      got.emplace_back(edge.owner_local, edge.neighbor_local, edge.edge_id);
    }
    EXPECT_EQ(got,
              Among(truth, r, owners,
                    NodesOf(*batch, NeighborType(relation, spec.direction)),
                    Int64s(batch->seed_time)));
    EXPECT_EQ(batch->edges[r].indptr.rows(),
              static_cast<int64_t>(owners.size()) + 1);
    edge_count += static_cast<int64_t>(got.size());
  }
}

class InducedTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Partitions, InducedTest, ::testing::Values(0, 1, 3));

// pyg-lib's subgraph of nodes 1 to 4 of the 6-cycle.
TEST_P(InducedTest, SeedsOfACycle) {
  const auto source = OpenGraph(testing::Cycle(6), GetParam());
  const auto batch = Sample(*source, Induced({}), {{1, 2, 3, 4}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->nodes[0].original_id), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Int64s(batch->edges[0].indptr), ElementsAre(0, 1, 3, 5, 6));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor), ElementsAre(1, 0, 2, 1, 3, 2));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(3, 4, 5, 6, 7, 8));
}

TEST_P(InducedTest, EqualsBruteForceOfTheNodes) {
  const TestGraph graph = RandomGraph(8);
  const auto source = OpenGraph(graph, GetParam());
  int64_t edge_count = 0;
  for (const char* type : {"user", "item"}) {
    for (const Fanouts& fanouts :
         std::vector<Fanouts>{{}, {0}, {2}, {3, 2}, {-1}}) {
      for (const Direction direction : {Direction::kIn, Direction::kOut}) {
        for (const bool disjoint : {false, true}) {
          SCOPED_TRACE(std::string(type) + " " +
                       ::testing::PrintToString(fanouts) + " " +
                       std::string(DirectionName(direction)) +
                       (disjoint ? " disjoint" : ""));
          JobSpec spec = Induced(fanouts, type);
          spec.direction = direction;
          spec.disjoint = disjoint;
          ExpectInduced(*source, graph, spec, {{3, 9, 3, 0, 17, 21}, {}},
                        edge_count);
          spec.weighted = true;
          ExpectInduced(*source, graph, spec, {{5, 1}, {}}, edge_count);
        }
      }
    }
  }
  EXPECT_GT(edge_count, 1000);
}

TEST_P(InducedTest, EqualsBruteForceOfAdmissibleEdges) {
  const TestGraph graph = RandomGraph(9);
  const auto source = OpenGraph(graph, GetParam());
  int64_t edge_count = 0;
  for (const Fanouts& fanouts : std::vector<Fanouts>{{}, {2, 2}, {-1}}) {
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      for (const TemporalStrategy strategy :
           {TemporalStrategy::kUniform, TemporalStrategy::kLast}) {
        JobSpec spec = Induced(fanouts, "item");
        spec.direction = direction;
        spec.temporal = strategy;
        ExpectInduced(*source, graph, spec, {{3, 9, 3, 0, 30}, {}}, edge_count);
        ExpectInduced(*source, graph, spec, {{3, 9, 3, 0}, {5, 9, 7, -1}},
                      edge_count);
      }
    }
  }
  EXPECT_GT(edge_count, 100);
}

// Loops and repeated edges are edges too.
TEST_P(InducedTest, MultiEdgesAndLoopsCount) {
  TestGraph graph;
  graph.types = {{.count = 3}};
  graph.relations = {{.edges = {{0, 1}, {0, 1}, {1, 1}, {2, 1}, {1, 0}}}};
  const auto source = OpenGraph(graph, GetParam());
  const auto batch = Sample(*source, Induced({}), {{1, 0}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->edges[0].indptr), ElementsAre(0, 3, 4));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(0, 1, 2, 4));
}

}  // namespace
}  // namespace millrace
