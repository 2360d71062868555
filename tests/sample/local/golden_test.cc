// SPDX-License-Identifier: Apache-2.0
// Digests of batches, computed by tests/oracle: its sample() and digest() for
// these jobs on the dataset that BuildDataset() writes. They pin words of the
// random streams, and orders, that no other C++ test fixes.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/graph/store.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

// Has one relation that is the reverse of another.
testing::TestGraph Graph() {
  testing::TestGraph graph = testing::RandomGraph(1);
  testing::TestRelation reverse;
  reverse.src = "item";
  reverse.name = "rev_buys";
  reverse.dst = "user";
  for (const auto& [user, item] : graph.relations[0].edges) {
    reverse.edges.emplace_back(item, user);
  }
  graph.relations.push_back(std::move(reverse));
  return graph;
}

struct Golden {
  std::string name;
  std::string digest;
  std::function<void(JobSpec&)> set;
};

TEST(GoldenTest, NodeSeedsGiveTheDigestsOfTheOracle) {
  const auto source = testing::OpenGraph(Graph(), 0);
  const std::vector<Golden> jobs = {
      {"uniform",
       "aedbdf0081e773b9504f56306ca45a6f42b6100158684734083a02b2286b9d47",
       [](JobSpec&) {}},
      {"out",
       "bc4a31f933bb3e77168136b36aefbaa5f2df3f29bed13ad5015d55ce1d859202",
       [](JobSpec& s) { s.direction = Direction::kOut; }},
      {"replace disjoint",
       "f90e692532f188e5d88f7b48d72d50f50a100143a651b6a0f861f85d71ca3b69",
       [](JobSpec& s) { s.replace = s.disjoint = true; }},
      {"weighted",
       "cf97e855c04b72737d6084f65e44843d3797a0bd34b4d6d55573412ea50b0445",
       [](JobSpec& s) {
         s.weighted = true;
         s.relation_fanouts["item__rev_buys__user"] = {0, 0, 0};
       }},
      {"walk",
       "bdf8f83f46a76830bd65343eb2a728ebbcbe1e5653c51cf087b000833ac1606b",
       [](JobSpec& s) {
         s.method = SampleMethod::kWalk;
         s.fanouts = {};
         s.walks = 3;
         s.walk_length = 4;
         s.metapath = {"user__buys__item", "item__likes__user"};
       }},
      {"ppr",
       "3fc0f8e4bdcde46d0958dc235bd318c5cfee0f88485ab93053367eca871c4db2",
       [](JobSpec& s) {
         s.method = SampleMethod::kPpr;
         s.walks = 5;
         s.walk_length = 6;
         s.metapath = {"item__cites__item"};
       }}};
  for (const Golden& golden : jobs) {
    JobSpec spec = testing::ExplicitJob({3, 2, 2}, "item");
    golden.set(spec);
    const auto batch =
        testing::Sample(*source, spec, {{0, 8, 8, 13, 27, 30}, {}}, 2);
    ASSERT_TRUE(batch.ok()) << golden.name << ": " << batch.status();
    EXPECT_EQ(Hex(DigestBatch(*batch, source->manifest().schema)),
              golden.digest)
        << golden.name;
  }
}

TEST(GoldenTest, EdgeSeedsGiveTheDigestsOfTheOracle) {
  const testing::TestGraph graph = Graph();
  const auto source = testing::OpenGraph(graph, 0);
  const std::vector<Golden> jobs = {
      {"triplet",
       "27b48da46ed690ce5195486065274b399272d2627e7a6eb5818c647992ea0286",
       [](JobSpec& s) {
         s.seed_type = "user__buys__item";
         s.negatives = {NegativeMode::kTriplet, 3};
       }},
      {"binary",
       "9e221d3a42ece84ade45390d27fef7633275b3f960562460364183c343d1075a",
       [](JobSpec& s) {
         s.seed_type = "item__cites__item";
         s.negatives = {NegativeMode::kBinary, 1.5};
         s.exclude = ExcludeSeedEdges::kSelf;
       }},
      {"shared",
       "83daa9fd14377fcf53315b4ac9d35b4bbb108afc6d036762b92d04228658af14",
       [](JobSpec& s) {
         s.seed_type = "item__likes__user";
         s.negatives = {NegativeMode::kShared, 4};
       }},
      {"triplet disjoint",
       "4396442196aeb0891d8f67b1e5e548d6677759204bd76048cc9fae59492ad9f7",
       [](JobSpec& s) {
         s.seed_type = "item__likes__user";
         s.negatives = {NegativeMode::kTriplet, 2};
         s.disjoint = true;
       }},
      {"without the reverses of rev_buys",
       "831115160a0ae185526d3f9b7499be458bd4f304de5026199520577eddbbd619",
       [](JobSpec& s) {
         s.seed_type = "item__rev_buys__user";
         s.exclude = ExcludeSeedEdges::kReverse;
       }},
      {"without the reverses of buys",
       "01ad0f5007467dbb6e9d5ccbbc6a6713f0df32f92c83b5e0277b709929d1c01b",
       [](JobSpec& s) {
         s.seed_type = "user__buys__item";
         s.exclude = ExcludeSeedEdges::kReverse;
       }}};
  for (const Golden& golden : jobs) {
    JobSpec spec = testing::ExplicitJob({-1, 2});
    spec.seed_kind = SeedKind::kEdge;
    golden.set(spec);
    const auto job = ResolveJob(spec, source->manifest());
    ASSERT_TRUE(job.ok()) << golden.name << ": " << job.status();
    // Uses the relation's first edges.
    ExplicitSeeds pairs;
    for (size_t i = 0; i < 9; ++i) {
      const auto& edges = graph.relations[job->seed_relation].edges;
      pairs.ids.push_back(edges[i].first);
      pairs.dst.push_back(edges[i].second);
    }
    const auto batch =
        source->Make(*job, {.batch = 2,
                            .explicit_seeds = std::move(pairs),
                            .columns = DigestColumns(false, false)});
    ASSERT_TRUE(batch.ok()) << golden.name << ": " << batch.status();
    EXPECT_EQ(Hex(DigestBatch(*batch, source->manifest().schema)),
              golden.digest)
        << golden.name;
  }
}

// One store per version of the format; all hold the same graph.
TEST(GoldenTest, StoresOfAllVersionsGiveTheSameBatches) {
  for (int version = kOldestStoreVersion; version <= kStoreVersion; ++version) {
    auto store =
        Store::Open(std::filesystem::path(MILLRACE_SOURCE_DIR) /
                    "tests/golden" / ("store-" + std::to_string(version)))
            .value();
    EXPECT_EQ(store->manifest().version, version);
    const auto source = LocalBatchSource::Create(std::move(store), 1);
    ASSERT_TRUE(source.ok()) << source.status();
    JobSpec spec;
    spec.split = "added";
    spec.fanouts = {2, 2};
    spec.batch_size = 4;
    const auto job = ResolveJob(spec, (*source)->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto batch =
        (*source)->Make(*job, {.columns = DigestColumns(true, false)});
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(
        Hex(DigestBatch(*batch, (*source)->manifest().schema)),
        "a7f71e95ec84b468d15f1d4c8db43710b6c2e58712e6ed3382ff5eac06179887")
        << version;
  }
}

}  // namespace
}  // namespace millrace
