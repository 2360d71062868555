// SPDX-License-Identifier: Apache-2.0
#include "common/sample/resolve_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest TwoTypes() {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "user", .count = 3},
                                {.name = "item", .count = 4}};
  manifest.schema.relations = {
      {.src = 0, .name = "buys", .dst = 1, .has_in = true},
      {.src = 1, .name = "rev_buys", .dst = 0, .has_in = true}};
  manifest.books = {PartitionBook({0, 3}), PartitionBook({0, 4})};
  return manifest;
}

JobSpec Good() {
  JobSpec spec;
  spec.seed_type = "item";
  spec.fanouts = {3, 2};
  return spec;
}

TEST(ResolveJobTest, UnnamedRelationsTakeTheCommonFanouts) {
  JobSpec spec = Good();
  spec.relation_fanouts["item__rev_buys__user"] = {0, 5};
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->seed_type, 1);
  EXPECT_EQ(job->hops, 2);
  EXPECT_THAT(job->fanouts, ElementsAre(ElementsAre(3, 2), ElementsAre(0, 5)));
}

TEST(ResolveJobTest, RelationsWithoutFanoutsAreNotSampled) {
  JobSpec spec = Good();
  spec.fanouts.clear();
  spec.relation_fanouts["user__buys__item"] = {4, -1};
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->fanouts, ElementsAre(ElementsAre(4, -1), ElementsAre(0, 0)));
}

TEST(ResolveJobTest, AcceptsTheLargestFanout) {
  JobSpec spec = Good();
  spec.fanouts = {kMaxFanout, 2};
  EXPECT_TRUE(ResolveJob(spec, TwoTypes()).ok());
}

TEST(ResolveJobTest, AcceptsTheMaximumNumberOfHops) {
  JobSpec spec = Good();
  spec.fanouts.assign(255, 1);
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hops, 255);
}

TEST(ResolveJobTest, BatchesMayBeAsSmallAndAsLargeAsTheMessageSays) {
  JobSpec spec = Good();
  for (const int64_t size : {int64_t{1}, int64_t{1} << 30}) {
    spec.batch_size = size;
    EXPECT_TRUE(ResolveJob(spec, TwoTypes()).ok()) << size;
  }
  spec.batch_size = (int64_t{1} << 30) + 1;
  EXPECT_FALSE(ResolveJob(spec, TwoTypes()).ok());
}

TEST(ResolveJobTest, NoHopsMeansOnlySeeds) {
  JobSpec spec = Good();
  spec.fanouts.clear();
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hops, 0);
}

struct BadJob {
  std::string name;
  std::function<void(JobSpec&)> spoil;
  absl::StatusCode code;
  std::string message;
};

class BadJobTest : public ::testing::TestWithParam<BadJob> {};

TEST_P(BadJobTest, IsRefusedByName) {
  JobSpec spec = Good();
  GetParam().spoil(spec);
  const auto job = ResolveJob(spec, TwoTypes());
  EXPECT_EQ(job.status().code(), GetParam().code) << job.status();
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, BadJobTest,
    ::testing::Values(
        BadJob{"fanout",
               [](JobSpec& s) {
                 s.fanouts = {5, -2};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts -2 is out of range: 0 to 1048576, or -1 for all "
               "neighbours"},
        BadJob{"large_fanout",
               [](JobSpec& s) {
                 s.fanouts = {kMaxFanout + 1, 2};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts 1048577 is out of range: 0 to 1048576, or -1"},
        BadJob{"large_fanout_of_a_relation",
               [](JobSpec& s) {
                 s.relation_fanouts["user__buys__item"] = {2, kMaxFanout + 1};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts user__buys__item=1048577 is out of range"},
        BadJob{"hops", [](JobSpec& s) { s.fanouts.assign(256, 1); },
               absl::StatusCode::kInvalidArgument, "256 hops; the limit"},
        BadJob{"lengths",
               [](JobSpec& s) { s.relation_fanouts["user__buys__item"] = {1}; },
               absl::StatusCode::kInvalidArgument, "another relation has 2"},
        BadJob{
            "relation",
            [](JobSpec& s) { s.relation_fanouts["user__sells__item"] = {1}; },
            absl::StatusCode::kNotFound, "user__sells__item"},
        BadJob{"type", [](JobSpec& s) { s.seed_type = "shop"; },
               absl::StatusCode::kNotFound, "shop"},
        BadJob{"no_type", [](JobSpec& s) { s.seed_type.clear(); },
               absl::StatusCode::kInvalidArgument, "user, item"},
        BadJob{"batch_size", [](JobSpec& s) { s.batch_size = 0; },
               absl::StatusCode::kInvalidArgument,
               "batch_size 0 is out of range: 1 to "},
        BadJob{"direction", [](JobSpec& s) { s.direction = Direction::kOut; },
               absl::StatusCode::kFailedPrecondition,
               "direction out: the store has no out-lists of "}),
    [](const auto& info) { return info.param.name; });

// Sets all that a job of edges or graphs needs.
void OfEdges(JobSpec& spec) {
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = "user__buys__item";
}

TEST(ResolveJobTest, NegativesHaveLimits) {
  const std::string limit =
      " is out of range: a whole number from 1 to 1048576 (binary: a number "
      "above 0)";
  const auto message = [](NegativeMode mode, double amount) {
    JobSpec spec = Good();
    OfEdges(spec);
    spec.negatives = {mode, amount};
    return std::string(ResolveJob(spec, TwoTypes()).status().message());
  };
  for (const NegativeMode mode :
       {NegativeMode::kBinary, NegativeMode::kTriplet, NegativeMode::kShared}) {
    for (const double amount : {1.0, 3.0, 1048576.0}) {
      EXPECT_EQ(message(mode, amount), "");
    }
    EXPECT_EQ(message(mode, 0), "negatives 0" + limit);
    EXPECT_EQ(message(mode, -1), "negatives -1" + limit);
    EXPECT_EQ(message(mode, 1048577), "negatives 1048577" + limit);
  }
  EXPECT_EQ(message(NegativeMode::kBinary, 0.5), "");
  EXPECT_EQ(message(NegativeMode::kTriplet, 1.5), "negatives 1.5" + limit);
  EXPECT_EQ(message(NegativeMode::kShared, 1.5), "negatives 1.5" + limit);
  EXPECT_EQ(message(NegativeMode::kInBatch, 0), "");
}

TEST(ResolveJobTest, NegativesAreCheckedInSomeLists) {
  JobSpec spec = Good();
  OfEdges(spec);
  spec.fanouts.clear();
  spec.negatives = {NegativeMode::kTriplet, 1};
  Manifest manifest = TwoTypes();
  EXPECT_EQ(ResolveJob(spec, manifest).status(), absl::OkStatus());
  Relation& relation = manifest.schema.relations[0];
  relation.has_in = false;
  EXPECT_EQ(ResolveJob(spec, manifest).status().message(),
            "negatives: the store has no lists of user__buys__item to check "
            "them in");
  EXPECT_TRUE(absl::IsFailedPrecondition(ResolveJob(spec, manifest).status()));
  relation.has_out = true;
  EXPECT_EQ(ResolveJob(spec, manifest).status(), absl::OkStatus());
  relation.has_out = false;
  spec.negatives.mode = NegativeMode::kShared;
  EXPECT_EQ(ResolveJob(spec, manifest).status(), absl::OkStatus());
}

TEST(ResolveJobTest, PairsAreOfTheNamedOrTheOnlyRelation) {
  Manifest manifest = TwoTypes();
  JobSpec spec = Good();
  OfEdges(spec);
  const auto named = ResolveJob(spec, manifest).value();
  EXPECT_EQ(named.seed_relation, 0);
  EXPECT_EQ(named.seed_type, 1);
  spec.seed_type.clear();
  EXPECT_EQ(ResolveJob(spec, manifest).status().message(),
            "seed_type is needed: the graph has 2 relations");
  spec.seed_type = "item";
  EXPECT_EQ(ResolveJob(spec, manifest).status(),
            absl::NotFoundError("no relation 'item'; the relations are "
                                "'user__buys__item', 'item__rev_buys__user'"));
  spec.seed_type.clear();
  manifest.schema.relations.pop_back();
  const auto only = ResolveJob(spec, manifest).value();
  EXPECT_EQ(only.seed_relation, 0);
  EXPECT_EQ(only.seed_type, 1);
}

TEST(ResolveJobTest, GraphsAreTheirNodesAndTheEdgesAmongThem) {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "atom", .count = 9},
                                {.name = "graph", .count = 2}};
  manifest.schema.relations = {
      {.src = 0, .name = "bond", .dst = 0, .has_in = true},
      {.src = 0, .name = "in", .dst = 1, .has_in = true}};
  manifest.books = {PartitionBook({0, 9}), PartitionBook({0, 2})};
  JobSpec spec;
  spec.seed_kind = SeedKind::kGraph;
  const auto job = ResolveJob(spec, manifest).value();
  EXPECT_EQ(job.seed_type, 1);
  EXPECT_EQ(job.hops, 2);
  EXPECT_THAT(job.fanouts[0], ElementsAre(0, -1));
  EXPECT_THAT(job.fanouts[1], ElementsAre(-1, 0));
  manifest.schema.relations.pop_back();
  EXPECT_EQ(ResolveJob(spec, manifest).status().message(),
            "seed_kind graph: no relation says which nodes belong to a node "
            "of type graph");
  spec.seed_type = "atom";
  EXPECT_EQ(ResolveJob(spec, manifest)->seed_type, 0);
  EXPECT_EQ(ResolveJob(spec, TwoTypes()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ResolveJobTest, TrainGraphsAreSplitsThatSomeRelationLeadsTo) {
  Manifest manifest = TwoTypes();
  JobSpec spec = Good();
  spec.train_graph = "train";
  absl::Status status = ResolveJob(spec, manifest).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(),
            "train_graph induced:train: no node type has this split; there are "
            "no node splits");
  for (const char* name : {"valid", "test"}) {
    SplitInfo& split = manifest.splits.emplace_back();
    split.type = 0;
    split.name = name;
  }
  status = ResolveJob(spec, manifest).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(),
            "train_graph induced:train: no node type has this split; the node "
            "splits are test, valid");
  spec.train_graph = "valid";
  EXPECT_EQ(ResolveJob(spec, manifest).status(), absl::OkStatus());
  // Only item -> user leads to users.
  spec.relation_fanouts["user__buys__item"] = {0, 0};
  spec.relation_fanouts["item__rev_buys__user"] = {1, 1};
  status = ResolveJob(spec, manifest).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "train_graph induced:valid: no relation that is sampled leads to a "
            "node type with this split (user)");
}

}  // namespace
}  // namespace millrace
