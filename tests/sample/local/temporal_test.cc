// SPDX-License-Identifier: Apache-2.0
// Temporal jobs, compared with brute force over all edges and pyg-lib's cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/sample/draw/draw.h"
#include "common/sample/resolve_job.h"
#include "tests/support/brute_force.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::BruteForce;
using testing::EdgesOf;
using ::testing::ElementsAre;
using testing::ExplicitJob;
using ::testing::HasSubstr;
using testing::Int64s;
using ::testing::IsEmpty;
using testing::NodesOf;
using testing::OpenGraph;
using testing::RandomGraph;
using testing::RowsOf;
using testing::Sample;
using testing::SampledEdge;
using testing::SampledNode;
using testing::Seeds;
using testing::TestGraph;

TestGraph SixCycle() { return testing::Cycle(6); }

TestGraph NodeTimes() {
  TestGraph graph = SixCycle();
  graph.types[0].time = {0, 1, 2, 3, 4, 5};
  return graph;
}

TestGraph EdgeTimes() {
  TestGraph graph = SixCycle();
  for (int64_t e = 0; e < 12; ++e) graph.relations[0].time.push_back(e);
  return graph;
}

JobSpec Temporal(Fanouts fanouts,
                 TemporalStrategy strategy = TemporalStrategy::kUniform) {
  JobSpec spec = ExplicitJob(std::move(fanouts));
  spec.temporal = strategy;
  return spec;
}

class ConformanceTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Partitions, ConformanceTest,
                         ::testing::Values(0, 1, 3));

TEST_P(ConformanceTest, NodeTimes) {
  const auto source = OpenGraph(NodeTimes(), GetParam());
  for (const JobSpec& spec :
       {Temporal({2, 2}), Temporal({1, 2}, TemporalStrategy::kLast)}) {
    const auto batch = Sample(*source, spec, {{2, 3}, {}});
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_THAT(Int64s(batch->seed_time), ElementsAre(2, 3));
    EXPECT_THAT(RowsOf(*batch, source->manifest().schema),
                ElementsAre(0, 1, 2, 2, 3, 3));
    EXPECT_THAT(Int64s(batch->edges[0].neighbor),
                ElementsAre(2, 3, 4, 0, 5, 1));
    EXPECT_THAT(
        NodesOf(*batch, 0),
        ElementsAre(SampledNode{2, 0}, SampledNode{3, 1}, SampledNode{1, 0},
                    SampledNode{2, 1}, SampledNode{0, 0}, SampledNode{1, 1}));
    EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(4, 6, 2, 3, 4, 5));
  }
}

TEST_P(ConformanceTest, EdgeTimes) {
  const auto source = OpenGraph(EdgeTimes(), GetParam());
  const auto batch = Sample(*source, Temporal({2, 2}), {{2, 3}, {5, 6}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(RowsOf(*batch, source->manifest().schema),
              ElementsAre(0, 0, 1, 2, 2, 4, 4));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor),
              ElementsAre(2, 3, 4, 5, 0, 6, 1));
  EXPECT_THAT(
      NodesOf(*batch, 0),
      ElementsAre(SampledNode{2, 0}, SampledNode{3, 1}, SampledNode{1, 0},
                  SampledNode{3, 0}, SampledNode{2, 1}, SampledNode{0, 0},
                  SampledNode{1, 1}));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id),
              ElementsAre(4, 5, 6, 2, 3, 4, 5));
}

TEST_P(ConformanceTest, NothingAdmissible) {
  for (const TestGraph& graph : {NodeTimes(), EdgeTimes()}) {
    const auto source = OpenGraph(graph, GetParam());
    for (const bool replace : {false, true}) {
      JobSpec spec = Temporal({1, 1});
      spec.replace = replace;
      const auto batch = Sample(*source, spec, {{2, 3}, {-1, -1}});
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->edges[0].edge_count(), 0);
      EXPECT_THAT(NodesOf(*batch, 0),
                  ElementsAre(SampledNode{2, 0}, SampledNode{3, 1}));
    }
  }
}

TEST_P(ConformanceTest, WeightedByEvenEdges) {
  TestGraph graph = SixCycle();
  for (int e = 0; e < 12; ++e) {
    graph.relations[0].weight.push_back(e % 2 == 0 ? 1 : 0);
  }
  const auto source = OpenGraph(graph, GetParam());
  JobSpec spec = ExplicitJob({1});
  spec.weighted = true;
  const auto batch = Sample(*source, spec, {{0, 1}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(RowsOf(*batch, source->manifest().schema), ElementsAre(0, 1));
  EXPECT_THAT(Int64s(batch->edges[0].neighbor), ElementsAre(2, 0));
  EXPECT_THAT(Int64s(batch->nodes[0].original_id), ElementsAre(0, 1, 5));
  EXPECT_THAT(Int64s(batch->edges[0].edge_id), ElementsAre(0, 2));
}

// pyg-lib's distributed one-hop calls return what one Expand returns.
TEST(DrawConformanceTest, OneHopOfTwoNodes) {
  const auto store = testing::TestStore(NodeTimes()).Open();
  const std::vector<uint64_t> ids = {2, 3};
  const std::vector<int64_t> times = {2, 3};
  const std::vector<uint32_t> trees = {0, 1};
  const auto draw = [&](const Frontier& frontier) {
    Picks picks;
    EXPECT_TRUE(
        DrawNeighbors(*store, 0, {.edge_ids = true}, frontier, picks).ok());
    return picks;
  };
  const Picks all = draw({.fanout = kAllNeighbors, .ids = ids});
  EXPECT_THAT(all.neighbors, ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(all.edge_ids, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(all.counts, ElementsAre(2, 2));
  const Picks disjoint = draw({.fanout = 2, .ids = ids, .trees = trees});
  EXPECT_THAT(disjoint.neighbors, ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(disjoint.counts, ElementsAre(2, 2));
  const Picks temporal =
      draw({.fanout = 2, .ids = ids, .trees = trees, .times = times});
  EXPECT_THAT(temporal.neighbors, ElementsAre(1, 2));
  EXPECT_THAT(temporal.edge_ids, ElementsAre(4, 6));
  EXPECT_THAT(temporal.counts, ElementsAre(1, 1));
}

// A way of sampling, as a change to a job.
struct Way {
  std::string name;
  void (*set)(JobSpec&);
};
const Way kWays[] = {
    {"uniform", [](JobSpec&) {}},
    {"last", [](JobSpec& s) { s.temporal = TemporalStrategy::kLast; }},
    {"weighted", [](JobSpec& s) { s.weighted = true; }},
    {"labor", [](JobSpec& s) { s.method = SampleMethod::kLabor; }},
    {"induced", [](JobSpec& s) { s.method = SampleMethod::kInduced; }},
    {"replace", [](JobSpec& s) { s.replace = true; }},
    {"weighted_replace",
     [](JobSpec& s) {
       s.replace = true;
       s.weighted = true;
     }},
    {"induced_last",
     [](JobSpec& s) {
       s.method = SampleMethod::kInduced;
       s.temporal = TemporalStrategy::kLast;
     }},
};

// Seeds of items: with their own times, or with other times.
const Seeds kOwnTimes = {{0, 7, 7, 12, 30, 3}, {}};
const Seeds kOtherTimes = {{0, 7, 7, 12, 30, 3}, {4, 0, 9, -5, 100, 6}};

std::vector<int64_t> TimesOf(const TestGraph& graph, const Seeds& seeds) {
  if (!seeds.times.empty()) return seeds.times;
  std::vector<int64_t> times;
  for (const int64_t seed : seeds.ids) {
    times.push_back(graph.types[1].time[seed]);
  }
  return times;
}

class PartitionsTest : public ::testing::TestWithParam<int> {
 protected:
  PartitionsTest()
      : graph_(RandomGraph(5)), source_(OpenGraph(graph_, GetParam())) {}

  // Calls check(spec, name, seeds, times) for all ways, directions and seeds.
  template <typename Check>
  void ForEachJob(const Fanouts& fanouts, Check check) {
    for (const Way& way : kWays) {
      for (const Direction direction : {Direction::kIn, Direction::kOut}) {
        for (const Seeds& seeds : {kOwnTimes, kOtherTimes}) {
          JobSpec spec = Temporal(fanouts);
          spec.seed_type = "item";
          spec.direction = direction;
          way.set(spec);
          SCOPED_TRACE(way.name + " " + std::string(DirectionName(direction)) +
                       (seeds.times.empty() ? " own" : " given"));
          check(spec, seeds, TimesOf(graph_, seeds));
        }
      }
    }
  }
  const Schema& schema() const { return source_->manifest().schema; }

  const TestGraph graph_;
  const std::unique_ptr<LocalBatchSource> source_;
};
INSTANTIATE_TEST_SUITE_P(Partitions, PartitionsTest,
                         ::testing::Values(0, 1, 3));

TEST_P(PartitionsTest, NothingIsLaterThanItsSeed) {
  int64_t checked = 0;
  ForEachJob({3, 2, 3}, [&](const JobSpec& spec, const Seeds& seeds,
                            const std::vector<int64_t>& times) {
    const BruteForce truth(graph_, spec.direction);
    const auto batch = Sample(*source_, spec, seeds);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(Int64s(batch->seed_time), times);
    for (size_t r = 0; r < graph_.relations.size(); ++r) {
      for (const SampledEdge& edge :
           EdgesOf(*batch, schema(), static_cast<RelationIndex>(r))) {
        ASSERT_EQ(edge.owner.tree, edge.neighbor.tree);
        ASSERT_EQ(truth.Owner(r, edge.edge_id), edge.owner.original);
        ASSERT_EQ(truth.Neighbor(r, edge.edge_id), edge.neighbor.original);
        ASSERT_LE(truth.Time(r, edge.edge_id), times[edge.owner.tree]);
        ++checked;
      }
    }
    // If edges have their own times, nodes (items) are not later either.
    for (const SampledNode& node : NodesOf(*batch, 1)) {
      if (node.original == seeds.ids[node.tree]) continue;
      ASSERT_LE(graph_.types[1].time[node.original], times[node.tree]);
    }
  });
  EXPECT_GT(checked, 1000);
}

// (hop, relation, tree, edge id).
using HopEdge = std::tuple<int, size_t, int64_t, int64_t>;

// The edges that hops from the seeds find, taking the last `fanout` of each
// list (-1: all).
std::multiset<HopEdge> Expand(const BruteForce& truth, const Seeds& seeds,
                              const std::vector<int64_t>& times,
                              const Fanouts& fanouts) {
  std::multiset<HopEdge> found;
  using Node = std::pair<std::string, int64_t>;
  for (size_t tree = 0; tree < seeds.ids.size(); ++tree) {
    std::set<Node> seen = {{"item", seeds.ids[tree]}};
    std::set<Node> frontier = seen;
    for (size_t hop = 0; hop < fanouts.size(); ++hop) {
      std::set<Node> next;
      for (const auto& [type, node] : frontier) {
        for (size_t r = 0; r < truth.graph().relations.size(); ++r) {
          if (truth.list_type(r) != type) continue;
          std::vector<int64_t> list = truth.List(r, node, times[tree]);
          const auto size = static_cast<int32_t>(list.size());
          if (fanouts[hop] >= 0 && fanouts[hop] < size) {
            list.erase(list.begin(), list.end() - fanouts[hop]);
          }
          for (const int64_t edge : list) {
            found.emplace(static_cast<int>(hop), r, tree, edge);
            const Node neighbor = {truth.neighbor_type(r),
                                   truth.Neighbor(r, edge)};
            if (seen.insert(neighbor).second) next.insert(neighbor);
          }
        }
      }
      frontier = next;
    }
  }
  return found;
}

std::multiset<HopEdge> Sampled(const Batch& batch, const Schema& schema) {
  std::multiset<HopEdge> found;
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    const auto relation = static_cast<RelationIndex>(r);
    const TypeIndex type =
        ListOwnerType(schema.relations[relation], batch.direction);
    for (const SampledEdge& edge : EdgesOf(batch, schema, relation)) {
      int hop = 0;
      while (edge.owner_local >= batch.nodes[type].hop_offsets[hop + 1]) ++hop;
      found.emplace(hop, r, edge.owner.tree, edge.edge_id);
    }
  }
  return found;
}

TEST_P(PartitionsTest, AllNeighborsAreAllAdmissibleEdges) {
  const Fanouts all = {-1, -1, -1};
  ForEachJob(all, [&](const JobSpec& spec, const Seeds& seeds,
                      const std::vector<int64_t>& times) {
    if (spec.method == SampleMethod::kInduced) return;  // see induced_test.cc
    const auto batch = Sample(*source_, spec, seeds);
    ASSERT_TRUE(batch.ok()) << batch.status();
    const auto want =
        Expand(BruteForce(graph_, spec.direction), seeds, times, all);
    EXPECT_GT(want.size(), 50u);
    EXPECT_EQ(Sampled(*batch, schema()), want);
  });
}

TEST_P(PartitionsTest, LastTakesTheLatestOfEachList) {
  for (const Fanouts& fanouts : std::vector<Fanouts>{{1}, {3, 2}, {2, 4, 1}}) {
    ForEachJob(fanouts, [&](const JobSpec& spec, const Seeds& seeds,
                            const std::vector<int64_t>& times) {
      if (spec.temporal != TemporalStrategy::kLast ||
          spec.method == SampleMethod::kInduced) {
        return;
      }
      const auto batch = Sample(*source_, spec, seeds);
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(
          Sampled(*batch, schema()),
          Expand(BruteForce(graph_, spec.direction), seeds, times, fanouts));
    });
  }
}

// Picks are ordered by time, then by edge id.
TEST_P(PartitionsTest, LastPicksAreOrderedByTime) {
  JobSpec spec = Temporal({4}, TemporalStrategy::kLast);
  spec.seed_type = "item";
  const Seeds seeds = {{0, 7, 12, 30}, {9, 9, 5, 9}};
  const auto batch = Sample(*source_, spec, seeds);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const BruteForce truth(graph_, Direction::kIn);
  std::vector<int64_t> want;
  for (size_t tree = 0; tree < seeds.ids.size(); ++tree) {
    auto list = truth.List(0, seeds.ids[tree], seeds.times[tree]);
    if (list.size() > 4) list.erase(list.begin(), list.end() - 4);
    want.insert(want.end(), list.begin(), list.end());
  }
  EXPECT_EQ(Int64s(batch->edges[0].edge_id), want);
}

// A hub's edges with increasing times: for a seed with a given time, later
// edges might as well not exist. The largest weight is among the early ones, so
// that integer weights do not change.
TestGraph Hub(int64_t edges) {
  TestGraph graph;
  graph.types = {{.count = 301}};
  graph.relations = {{}};
  for (int64_t e = 0; e < edges; ++e) {
    graph.relations[0].edges.emplace_back(e + 1, 0);
    graph.relations[0].time.push_back(e / 3);
    graph.relations[0].weight.push_back(
        e == 0 ? 64 : static_cast<float>(e * 7 % 13));
  }
  return graph;
}

TEST(TemporalTest, LaterEdgesAreAsIfTheyWereNotThere) {
  constexpr int64_t kAll = 300;
  const auto whole = OpenGraph(Hub(kAll), 0);
  for (const int64_t time : {0, 1, 20, 70, 98}) {
    const auto early = OpenGraph(Hub((time + 1) * 3), 0);
    for (const Way& way : kWays) {
      for (const int32_t fanout : {1, 5, 60, -1}) {
        JobSpec spec = Temporal({fanout});
        way.set(spec);
        const Seeds seeds = {{0, 0}, {time, time}};
        const auto got = Sample(*whole, spec, seeds);
        const auto want = Sample(*early, spec, seeds);
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_TRUE(want.ok()) << want.status();
        EXPECT_EQ(Int64s(got->edges[0].edge_id), Int64s(want->edges[0].edge_id))
            << way.name << " fanout " << fanout << " time " << time;
        EXPECT_EQ(NodesOf(*got, 0), NodesOf(*want, 0));
      }
    }
  }
}

TEST(TemporalTest, SeedsWithoutTimesAreRefused) {
  const auto source = OpenGraph(EdgeTimes(), 0);
  const auto status = [&](const Seeds& seeds) {
    return Sample(*source, Temporal({2}), seeds).status();
  };
  EXPECT_TRUE(status({{1, 2}, {4, 5}}).ok());
  for (const std::vector<int64_t>& times :
       std::vector<std::vector<int64_t>>{{}, {3}, {3, 4, 5}}) {
    const absl::Status refusal = status({{1, 2}, times});
    EXPECT_TRUE(absl::IsInvalidArgument(refusal)) << refusal;
    EXPECT_THAT(std::string(refusal.message()),
                HasSubstr(std::to_string(times.size()) + " times for 2 seeds"));
  }
}

TEST(TemporalTest, SeedsOfASplitWithoutTimesAreRefused) {
  TestGraph graph = EdgeTimes();
  graph.splits = {{.ids = {0, 1}}};
  const auto source = OpenGraph(graph, 0);
  JobSpec spec = Temporal({2});
  spec.split = "train";
  const auto job = ResolveJob(spec, source->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status status = source->Make(*job, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("0 times for 2 seeds"));
}

// The times of nodes do not take the place of the missing times of edge seeds.
TEST(TemporalTest, EdgeSeedsWithoutTimesAreRefused) {
  const auto source = OpenGraph(EdgeTimes(), 0);
  JobSpec spec = Temporal({2});
  spec.seed_kind = SeedKind::kEdge;
  const auto job = ResolveJob(spec, source->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  ExplicitSeeds pairs;
  pairs.ids = {0, 1};
  pairs.dst = {1, 2};
  const std::string refusal(
      source->Make(*job, {.explicit_seeds = pairs}).status().message());
  EXPECT_EQ(refusal, "temporal: 0 times for 2 edge seeds");
}

TEST(TemporalTest, SeedsOfASplitHaveTheirOwnTimes) {
  for (const int parts : {0, 3}) {
    const TestGraph graph = RandomGraph(5);
    const auto source = OpenGraph(graph, parts);
    JobSpec spec = Temporal({2});
    spec.seed_type = "item";
    spec.split = "train";
    spec.batch_size = 7;
    const auto job = ResolveJob(spec, source->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    for (uint32_t batch = 0; batch < 3; ++batch) {
      const auto made = source->Make(*job, {.batch = batch});
      ASSERT_TRUE(made.ok()) << made.status();
      const auto seeds = Int64s(made->seed);
      EXPECT_EQ(Int64s(made->seed_time), TimesOf(graph, {seeds, {}}));
    }
  }
}

TEST(TemporalTest, TimesOfSeedsAreForTemporalJobs) {
  const auto source = OpenGraph(NodeTimes(), 0);
  const absl::Status status =
      Sample(*source, ExplicitJob({2}), {{2, 3}, {0, 0}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::StartsWith("temporal is needed: the seeds have times, but "
                            "the job is not temporal"));
  const auto batch = Sample(*source, ExplicitJob({2}), {{2, 3}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->edges[0].edge_count(), 4);
  EXPECT_FALSE(batch->seed_time.present());
}

}  // namespace
}  // namespace millrace
