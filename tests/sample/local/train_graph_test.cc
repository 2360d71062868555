// SPDX-License-Identifier: Apache-2.0
// --train-graph induced: batches equal those of the graph without the edges
// that lead to nodes outside the split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::EdgesOf;
using testing::ExplicitJob;
using ::testing::HasSubstr;
using testing::Int64s;
using testing::NodesOf;
using testing::OpenGraph;
using testing::RandomGraph;
using testing::Sample;
using testing::SampledEdge;
using testing::Seeds;
using testing::TestGraph;
using testing::TestRelation;

constexpr char kBuys[] = "user__buys__item";
constexpr char kLikes[] = "item__likes__user";
constexpr char kCites[] = "item__cites__item";

// RandomGraph without edge features and with weights 0 and 1: integer weights
// are computed for whole lists, and these do not depend on removed edges.
TestGraph PlainGraph(uint32_t seed) {
  TestGraph graph = RandomGraph(seed);
  for (TestRelation& relation : graph.relations) {
    relation.feature = {};
    for (float& weight : relation.weight) weight = weight > 0 ? 1 : 0;
  }
  return graph;
}

// A graph without the edges to neighbours outside the split of items, and for
// each relation the original numbers of its edges.
struct Reduced {
  TestGraph graph;
  std::vector<std::vector<int64_t>> edge_ids;
};

Reduced Reduce(const TestGraph& whole, Direction direction) {
  Reduced reduced = {whole, {}};
  const std::set<int64_t> items(whole.splits[0].ids.begin(),
                                whole.splits[0].ids.end());
  for (size_t r = 0; r < whole.relations.size(); ++r) {
    const TestRelation& from = whole.relations[r];
    TestRelation& to = reduced.graph.relations[r];
    const bool in = direction == Direction::kIn;
    const bool limited = (in ? from.src : from.dst) == "item";
    to.edges.clear();
    to.weight.clear();
    to.time.clear();
    std::vector<int64_t>& edge_ids = reduced.edge_ids.emplace_back();
    for (size_t e = 0; e < from.edges.size(); ++e) {
      const auto& [src, dst] = from.edges[e];
      if (limited && !items.contains(in ? src : dst)) continue;
      to.edges.push_back(from.edges[e]);
      if (!from.weight.empty()) to.weight.push_back(from.weight[e]);
      if (!from.time.empty()) to.time.push_back(from.time[e]);
      edge_ids.push_back(static_cast<int64_t>(e));
    }
  }
  return reduced;
}

struct Case {
  JobSpec spec;
  ExplicitSeeds seeds;
};

// (local ids of the list's node and of the neighbour, edge id).
using LocalEdge = std::tuple<int64_t, int64_t, int64_t>;

std::vector<LocalEdge> LocalEdges(const Batch& batch, const Schema& schema,
                                  RelationIndex relation,
                                  const std::vector<int64_t>* edge_ids) {
  std::vector<LocalEdge> edges;
  for (const SampledEdge& e : EdgesOf(batch, schema, relation)) {
    const bool renamed = edge_ids != nullptr && e.edge_id >= 0;
    edges.emplace_back(e.owner_local, e.neighbor_local,
                       renamed ? edge_ids->at(e.edge_id) : e.edge_id);
  }
  return edges;
}

// Returns the number of edges.
size_t ExpectBatchOfReduced(const LocalBatchSource& whole,
                            const LocalBatchSource& reduced,
                            const Reduced& truth, const Case& job) {
  absl::StatusOr<Batch> batches[2];
  for (const bool limited : {false, true}) {
    JobSpec spec = job.spec;
    if (limited) spec.train_graph = "train";
    const LocalBatchSource& source = limited ? whole : reduced;
    const auto resolved = ResolveJob(spec, source.manifest());
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    if (!resolved.ok()) return 0;
    batches[limited] =
        source.Make(*resolved, {.batch = 3,
                                .explicit_seeds = job.seeds,
                                .columns = DigestColumns(false, false)});
    EXPECT_TRUE(batches[limited].ok()) << batches[limited].status();
    if (!batches[limited].ok()) return 0;
  }
  const Schema& schema = whole.manifest().schema;
  size_t edges = 0;
  for (TypeIndex t = 0; t < 2; ++t) {
    EXPECT_EQ(NodesOf(*batches[1], t), NodesOf(*batches[0], t));
  }
  for (RelationIndex r = 0; r < 3; ++r) {
    const auto found = LocalEdges(*batches[1], schema, r, nullptr);
    edges += found.size();
    EXPECT_EQ(found, LocalEdges(*batches[0], schema, r, &truth.edge_ids[r]));
  }
  EXPECT_EQ(Int64s(batches[1]->walks), Int64s(batches[0]->walks));
  return edges;
}

JobSpec WithMethod(SampleMethod method, Fanouts fanouts) {
  JobSpec spec = ExplicitJob(std::move(fanouts), "item");
  spec.method = method;
  return spec;
}

std::vector<JobSpec> Methods(Direction direction) {
  JobSpec weighted = ExplicitJob({3, 4}, "item");
  weighted.weighted = true;
  JobSpec replaced = ExplicitJob({3, -1}, "item");
  replaced.replace = true;
  JobSpec weighted_replaced = weighted;
  weighted_replaced.replace = true;
  JobSpec disjoint = ExplicitJob({4, 2}, "item");
  disjoint.disjoint = true;
  JobSpec walk = WithMethod(SampleMethod::kWalk, {});
  walk.walks = 3;
  walk.walk_length = 5;
  walk.metapath = direction == Direction::kIn
                      ? std::vector<std::string>{kBuys, kLikes}
                      : std::vector<std::string>{kLikes, kBuys};
  JobSpec ranks = WithMethod(SampleMethod::kPpr, {5, 3});
  ranks.walks = 6;
  ranks.walk_length = 4;
  ranks.metapath = {kCites};
  return {ExplicitJob({3, 2, 4}, "item"),
          ExplicitJob({-1, 2}, "item"),
          weighted,
          replaced,
          weighted_replaced,
          disjoint,
          WithMethod(SampleMethod::kLabor, {3, 4}),
          WithMethod(SampleMethod::kInduced, {3, 2}),
          walk,
          ranks};
}

std::vector<Case> Cases(Direction direction) {
  // Items 0, 3 and 30 are not in the split.
  const Seeds seeds = {{5, 0, 3, 7, 0, 30}};
  std::vector<Case> cases;
  for (const JobSpec& spec : Methods(direction)) {
    cases.push_back({spec, seeds});
  }
  for (const auto strategy :
       {TemporalStrategy::kUniform, TemporalStrategy::kLast}) {
    Case timed = {ExplicitJob({3, 3}, "item"), seeds};
    timed.spec.temporal = strategy;
    timed.seeds.times = {9, 4, 6, 7, 8, 5};
    cases.push_back(timed);
  }
  Case pairs = {ExplicitJob({4, 4}, kCites), {}};
  pairs.spec.seed_kind = SeedKind::kEdge;
  pairs.spec.exclude = ExcludeSeedEdges::kReverse;
  pairs.seeds.ids = {1, 2, 3, 4, 5};
  pairs.seeds.dst = {2, 4, 5, 7, 1};
  cases.push_back(pairs);
  for (Case& one : cases) one.spec.direction = direction;
  return cases;
}

TEST(TrainGraphTest, IsTheGraphWithoutEdgesToOthers) {
  size_t edges = 0;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
      const TestGraph graph = PlainGraph(10 * seed);
      const Reduced truth = Reduce(graph, direction);
      for (const int parts : {0, 3}) {
        const auto whole = OpenGraph(graph, parts);
        const auto reduced = OpenGraph(truth.graph, parts);
        const std::vector<Case> cases = Cases(direction);
        for (size_t i = 0; i < cases.size(); ++i) {
          SCOPED_TRACE(::testing::Message() << "case " << i << ", parts "
                                            << parts << ", graph " << seed);
          edges += ExpectBatchOfReduced(*whole, *reduced, truth, cases[i]);
        }
      }
    }
  }
  EXPECT_GT(edges, 1000u);
}

// Tests jobs around pairs that the graph contains.
TEST(TrainGraphTest, LeavesOutTheEdgesOfSeedsToo) {
  const TestGraph graph = PlainGraph(4);
  const auto source = OpenGraph(graph, 2);
  Case pairs = {ExplicitJob({-1}, kCites), {}};
  pairs.spec.seed_kind = SeedKind::kEdge;
  pairs.spec.exclude = ExcludeSeedEdges::kSelf;
  pairs.spec.train_graph = "train";
  for (const auto& [src, dst] : graph.relations[2].edges) {
    if (pairs.seeds.ids.size() == 20) break;
    pairs.seeds.ids.push_back(src);
    pairs.seeds.dst.push_back(dst);
  }
  const auto job = ResolveJob(pairs.spec, source->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const auto batch = source->Make(
      *job,
      {.explicit_seeds = pairs.seeds, .columns = DigestColumns(false, false)});
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::set<std::pair<int64_t, int64_t>> seeds = [&] {
    std::set<std::pair<int64_t, int64_t>> set;
    for (size_t i = 0; i < pairs.seeds.ids.size(); ++i) {
      set.emplace(pairs.seeds.ids[i], pairs.seeds.dst[i]);
    }
    return set;
  }();
  const auto edges = EdgesOf(*batch, source->manifest().schema, 2);
  EXPECT_FALSE(edges.empty());
  for (const SampledEdge& edge : edges) {
    EXPECT_NE(edge.neighbor.original % 3, 0);
    EXPECT_FALSE(seeds.contains({edge.neighbor.original, edge.owner.original}));
  }
}

TEST(TrainGraphTest, AnUnknownSplitErrorListsTheSplits) {
  const auto source = OpenGraph(RandomGraph(1), 0);
  JobSpec spec = ExplicitJob({2}, "item");
  spec.train_graph = "trian";
  const absl::Status status = ResolveJob(spec, source->manifest()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              ::testing::AllOf(HasSubstr("train_graph induced:trian"),
                               HasSubstr("the node splits are train")));
}

// Otherwise the whole graph would be sampled silently.
TEST(TrainGraphTest, SplitsOfTypesThatNoEdgeLeadsToAreRefused) {
  const auto source = OpenGraph(RandomGraph(1), 0);
  JobSpec spec = ExplicitJob({}, "item");
  spec.train_graph = "train";  // a split of items
  const auto status = [&] {
    return ResolveJob(spec, source->manifest()).status();
  };
  EXPECT_TRUE(status().ok()) << status();  // samples no neighbours
  spec.relation_fanouts = {{kBuys, {2}}};  // in-lists hold users
  EXPECT_EQ(status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status().message(),
              ::testing::AllOf(HasSubstr("train_graph induced:train"),
                               HasSubstr("node type with this split (item)")));
  spec.direction = Direction::kOut;  // out-lists hold items
  EXPECT_TRUE(status().ok()) << status();
  spec.direction = Direction::kIn;
  spec.relation_fanouts = {{kBuys, {2}}, {kLikes, {2}}};
  EXPECT_TRUE(status().ok()) << status();
  spec.relation_fanouts.clear();
  spec.method = SampleMethod::kWalk;
  spec.walks = spec.walk_length = 1;
  spec.metapath = {kBuys};
  EXPECT_EQ(status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
