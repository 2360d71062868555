// SPDX-License-Identifier: Apache-2.0
// The sampler through LocalBatchSource: cases that can be checked by eye.
// tests/oracle compares it bit by bit with a second implementation.
#include "common/sample/draw/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/store_builder.h"
#include "tests/support/ways.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::Int64s;
using testing::OpenGraph;
using testing::TestGraph;

TestGraph SixCycle() { return testing::Cycle(6); }

JobSpec Job(Fanouts fanouts) {
  JobSpec spec;
  spec.fanouts = std::move(fanouts);
  spec.split.clear();
  return spec;
}

absl::StatusOr<Batch> SampleNodes(const LocalBatchSource& source,
                                  const JobSpec& spec,
                                  std::vector<int64_t> seeds) {
  absl::StatusOr<ResolvedJob> job = ResolveJob(spec, source.manifest());
  if (!job.ok()) return job.status();
  return source.Make(*job, {.explicit_seeds = testing::Seeds{std::move(seeds)},
                            .columns = DigestColumns(false, false)});
}

// Row and column of pyg-lib's csc=false output: the frontier node of each edge,
// and its neighbour.
std::vector<int64_t> FrontierOfEdges(const EdgeBlock& edges) {
  const auto indptr = edges.indptr.As<uint32_t>();
  std::vector<int64_t> rows;
  for (size_t v = 0; v + 1 < indptr.size(); ++v) {
    rows.insert(rows.end(), indptr[v + 1] - indptr[v], static_cast<int64_t>(v));
  }
  return rows;
}

TEST(SamplerTest, TakesAllNeighborsOverTwoHops) {
  const auto source = OpenGraph(SixCycle(), 0);
  const auto batch = SampleNodes(*source, Job({-1, -1}), {2, 3});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(FrontierOfEdges(batch->edges[0]),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor),
              ElementsAre(2, 1, 0, 3, 4, 0, 1, 5));
  EXPECT_THAT(Int64s(batch->nodes[0].original_id),
              ElementsAre(2, 3, 1, 4, 0, 5));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id),
              ElementsAre(4, 5, 6, 7, 2, 3, 8, 9));
  EXPECT_THAT(batch->nodes[0].hop_offsets, ElementsAre(0, 2, 4, 6));
}

// The trees of the negative pairs follow those of the seeds.
TEST(SamplerTest, EachNegativePairHasATreeOfItsOwn) {
  const auto source = OpenGraph(SixCycle(), 0);
  JobSpec spec = Job({2});
  spec.seed_kind = SeedKind::kEdge;
  spec.disjoint = true;
  spec.negatives = {NegativeMode::kBinary, 2};
  const auto job = ResolveJob(spec, source->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  ExplicitSeeds pairs;
  pairs.ids = {1, 2, 4};
  pairs.dst = {0, 1, 3};
  const auto batch = source->Make(
      *job, {.explicit_seeds = pairs, .columns = DigestColumns(false, false)});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto tree_of = [&](const Array& local, int64_t i) {
    return batch->nodes[0].tree.IntegerAt(local.IntegerAt(i));
  };
  const EdgeSeedBlock& block = batch->edge_seeds;
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tree_of(batch->seed_to_local, i), i);
    EXPECT_EQ(tree_of(block.dst_local, i), i);
  }
  ASSERT_EQ(block.negative_src_local.rows(), 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(tree_of(block.negative_src_local, i), 3 + i);
    EXPECT_EQ(tree_of(block.negative_local, i), 3 + i);
  }
}

TEST(SamplerTest, NamesOfTypesDoNotReachTheSampling) {
  TestGraph graph = SixCycle();
  graph.types[0].name = graph.relations[0].src = graph.relations[0].dst =
      "paper";
  graph.relations[0].name = "cites";
  const auto source = OpenGraph(graph, 0);
  const auto batch = SampleNodes(*source, Job({2, 2}), {2, 3});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->edges[0].neighbor),
              ElementsAre(2, 1, 0, 3, 4, 0, 1, 5));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id),
              ElementsAre(4, 5, 6, 7, 2, 3, 8, 9));
}

TEST(SamplerTest, KeepsTreesApartWhenDisjoint) {
  const auto source = OpenGraph(SixCycle(), 0);
  JobSpec spec = Job({2, 2});
  spec.disjoint = true;
  const auto batch = SampleNodes(*source, spec, {2, 3});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(FrontierOfEdges(batch->edges[0]),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor),
              ElementsAre(2, 3, 4, 5, 6, 0, 0, 7, 8, 1, 1, 9));
  EXPECT_THAT(Int64s(batch->nodes[0].original_id),
              ElementsAre(2, 3, 1, 3, 2, 4, 0, 4, 1, 5));
  EXPECT_THAT(Int64s(batch->nodes[0].tree),
              ElementsAre(0, 1, 0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id),
              ElementsAre(4, 5, 6, 7, 2, 3, 6, 7, 4, 5, 8, 9));
}

TEST(SamplerTest, IsolatedSeedsStandAlone) {
  TestGraph graph;
  graph.types = {{.name = "node", .count = 5}};
  graph.relations = {{}};
  const auto source = OpenGraph(graph, 0);
  const auto batch = SampleNodes(*source, Job({-1, 3}), {0, 1, 2, 3, 4});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->nodes[0].original_id), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(batch->edges[0].edge_count(), 0);
  EXPECT_THAT(batch->nodes[0].hop_offsets, ElementsAre(0, 5, 5, 5));
}

TEST(SamplerTest, EqualSeedsShareARow) {
  const auto source = OpenGraph(SixCycle(), 0);
  const auto batch = SampleNodes(*source, Job({1}), {4, 1, 4});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->seed), ElementsAre(4, 1, 4));
  EXPECT_THAT(Int64s(batch->seed_to_local), ElementsAre(0, 1, 0));
  EXPECT_EQ(batch->nodes[0].hop_offsets[1], 2);
}

TEST(SamplerTest, EqualSeedsAreTwoTreesWhenDisjoint) {
  const auto source = OpenGraph(SixCycle(), 0);
  JobSpec spec = Job({1});
  spec.disjoint = true;
  const auto batch = SampleNodes(*source, spec, {4, 4});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->seed_to_local), ElementsAre(0, 1));
  EXPECT_EQ(batch->edges[0].edge_count(), 2);
}

TEST(SamplerTest, FollowsOutEdges) {
  const auto source = OpenGraph(SixCycle(), 0);
  JobSpec spec = Job({-1});
  spec.direction = Direction::kOut;
  const auto batch = SampleNodes(*source, spec, {0});
  ASSERT_TRUE(batch.ok()) << batch.status();
  // Edges out of 0: to 1 (edge 2 = (0, 1)) and to 5 (edge 11 = (0, 5)).
  EXPECT_THAT(Int64s(batch->nodes[0].original_id), ElementsAre(0, 1, 5));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(2, 11));
}

TEST(SamplerTest, CountsMultiEdgesAndSelfLoopsAsSlots) {
  TestGraph graph;
  graph.types = {{.name = "node", .count = 2}};
  graph.relations = {{.edges = {{0, 1}, {0, 1}, {1, 1}}}};
  const auto source = OpenGraph(graph, 0);
  const auto batch = SampleNodes(*source, Job({-1}), {1});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(Int64s(batch->edges[0].neighbor), ElementsAre(1, 1, 0));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(0, 1, 2));
}

TEST(SamplerTest, ReplacementMayRepeatAndGivesFanoutPicks) {
  const auto source = OpenGraph(SixCycle(), 0);
  JobSpec spec = Job({20});
  spec.replace = true;
  const auto batch = SampleNodes(*source, spec, {0, 3});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->edges[0].edge_count(), 40);
}

TEST(SamplerTest, SamplesOnlyTheNamedRelations) {
  const auto source = OpenGraph(testing::RichGraph(), 0);
  const Schema& schema = source->manifest().schema;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    JobSpec spec = Job({});
    const std::string name = schema.RelationName(static_cast<int>(r));
    spec.relation_fanouts[name] = {-1};
    spec.seed_type = schema.node_types[schema.relations[r].dst].name;
    std::vector<int64_t> seeds;
    for (int64_t v = 0; v < schema.node_types[schema.relations[r].dst].count;
         ++v) {
      seeds.push_back(v);
    }
    const auto batch = SampleNodes(*source, spec, seeds);
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (size_t other = 0; other < schema.relations.size(); ++other) {
      EXPECT_EQ(batch->edges[other].edge_count(),
                other == r ? schema.relations[r].edge_count : 0)
          << name;
    }
  }
}

// Every partitioning of a graph gives the same digests.
class PartitionedTest : public ::testing::TestWithParam<int> {};

TEST_P(PartitionedTest, DigestsAreThoseOfTheDataset) {
  TestGraph graph = testing::RichGraph();
  for (testing::TestRelation& relation : graph.relations) {
    relation.in = relation.out = true;
  }
  const auto dataset = OpenGraph(graph, 0);
  const auto store = OpenGraph(graph, GetParam());
  const Schema& schema = dataset->manifest().schema;
  int compared = 0;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    for (const bool replace : {false, true}) {
      for (const bool disjoint : {false, true}) {
        for (const Fanouts& fanouts :
             std::vector<Fanouts>{{2, 2, 2}, {-1, 1}, {0, 3}, {1}}) {
          JobSpec spec = Job(fanouts);
          spec.seed_type = schema.node_types[0].name;
          spec.direction = direction;
          spec.replace = replace;
          spec.disjoint = disjoint;
          const auto expected = SampleNodes(*dataset, spec, {0, 1, 2, 1});
          const auto actual = SampleNodes(*store, spec, {0, 1, 2, 1});
          ASSERT_TRUE(expected.ok()) << expected.status();
          ASSERT_TRUE(actual.ok()) << actual.status();
          EXPECT_EQ(Hex(DigestBatch(*expected, schema)),
                    Hex(DigestBatch(*actual, schema)))
              << DirectionName(direction) << " replace " << replace
              << " disjoint " << disjoint << " fanouts "
              << ::testing::PrintToString(fanouts);
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 32);
}

TEST_P(PartitionedTest, EveryWayOfSamplingGivesThoseOfTheDataset) {
  const TestGraph graph = testing::RandomGraph(1);
  const auto dataset = OpenGraph(graph, 0);
  const auto store = OpenGraph(graph, GetParam());
  const Schema& schema = dataset->manifest().schema;
  for (const testing::Way& way : testing::WaysToSample()) {
    const JobSpec spec = way.Job();
    for (const testing::Seeds& seeds : testing::SeedsFor(spec)) {
      const bool edge_features = way.has_edge_ids();
      const auto expected =
          testing::Sample(*dataset, spec, seeds, 2, edge_features);
      const auto actual =
          testing::Sample(*store, spec, seeds, 2, edge_features);
      ASSERT_TRUE(expected.ok()) << way.name << ": " << expected.status();
      ASSERT_TRUE(actual.ok()) << way.name << ": " << actual.status();
      EXPECT_EQ(Hex(DigestBatch(*expected, schema)),
                Hex(DigestBatch(*actual, schema)))
          << way.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Partitions, PartitionedTest,
                         ::testing::Values(1, 2, 3, 7));

TEST(SamplerTest, RefusesSeedsOutOfRange) {
  const auto source = OpenGraph(SixCycle(), 0);
  const auto batch = SampleNodes(*source, Job({1}), {0, 6});
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(batch.status().message()),
              ::testing::HasSubstr("seed 6 at position 1"));
}

TEST(SamplerTest, RefusesADirectionTheStoreLacks) {
  TestGraph graph = SixCycle();
  graph.relations[0].out = false;
  const auto source = OpenGraph(graph, 0);
  JobSpec spec = Job({1});
  spec.direction = Direction::kOut;
  const auto batch = SampleNodes(*source, spec, {0});
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(batch.status().message()),
              ::testing::HasSubstr("the store has no out-lists"));
}

TEST(SamplerTest, BatchHoldsTheRowsOfTheGraph) {
  // Every sampler must have the property x == X[n_id].
  const TestGraph graph = testing::SmallGraph();
  const auto source = OpenGraph(graph, 0);
  JobSpec spec = Job({2, 2});
  const auto job = ResolveJob(spec, source->manifest());
  ASSERT_TRUE(job.ok());
  Columns columns = DigestColumns(true, false);
  columns.degrees = true;
  const auto batch = source->Make(
      *job, {.explicit_seeds = testing::Seeds{{5, 0}}, .columns = columns});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const NodeBlock& nodes = batch->nodes[0];
  const Array& all = graph.types[0].feature;
  ASSERT_EQ(nodes.feature.rows(), nodes.count());
  for (uint32_t v = 0; v < nodes.count(); ++v) {
    const int64_t original = nodes.original_id.IntegerAt(v);
    EXPECT_EQ(
        std::memcmp(nodes.feature.data() + v * all.row_bytes(),
                    all.data() + original * all.row_bytes(), all.row_bytes()),
        0);
    int64_t degree = 0;
    for (const auto& edge : graph.relations[0].edges) {
      degree += edge.second == original;
    }
    EXPECT_EQ(nodes.degree.IntegerAt(v), degree);
  }
  EXPECT_EQ(nodes.label.rows(), 2);
}

// 2^31 picks are refused before anything is drawn.
TEST(SamplerTest, RefusesMorePicksThanABatchCanHold) {
  const auto source = OpenGraph(testing::Cycle(2048), 0);
  std::vector<int64_t> seeds(2048);
  std::iota(seeds.begin(), seeds.end(), 0);
  JobSpec spec = Job({kMaxFanout});
  spec.replace = true;
  const absl::Status status = SampleNodes(*source, spec, seeds).status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(
                  "hop 0 draws 1048576 edges for each of 2048 nodes; the "
                  "limit is 2147483647 in all"));
  spec.fanouts = {kAllNeighbors};
  EXPECT_TRUE(SampleNodes(*source, spec, seeds).ok());
  spec.replace = false;
  spec.fanouts = {kMaxFanout};
  EXPECT_TRUE(SampleNodes(*source, spec, seeds).ok());
}

}  // namespace
}  // namespace millrace
