// SPDX-License-Identifier: Apache-2.0
// Jobs of methods other than plain neighbour sampling: how they are resolved,
// and which are refused with which message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "common/sample/job.h"
#include "common/sample/resolve_job.h"

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kBuys[] = "user__buys__item";
constexpr char kLikes[] = "item__likes__user";
constexpr char kKnows[] = "user__knows__user";

// Everything that a job may need: weights, times, original ids of neighbours.
Manifest Rich() {
  Manifest manifest;
  manifest.partitioning.method = "random";
  manifest.neighbor_original_ids = true;
  manifest.schema.node_types = {{.name = "user", .count = 3},
                                {.name = "item", .count = 4}};
  manifest.schema.node_types[1].has_time = true;
  const Relation relation = {.src = 0,
                             .name = "buys",
                             .dst = 1,
                             .has_in = true,
                             .has_out = true,
                             .has_weight = true,
                             .time = ListTime::kEdge};
  manifest.schema.relations.assign(3, relation);
  Relation& likes = manifest.schema.relations[1];
  likes.src = 1;
  likes.name = "likes";
  likes.dst = 0;
  likes.time = ListTime::kNeighbor;
  Relation& knows = manifest.schema.relations[2];
  knows.name = "knows";
  knows.dst = 0;
  manifest.books = {PartitionBook({0, 3}), PartitionBook({0, 4})};
  return manifest;
}

// The same without any of these.
Manifest Plain() {
  Manifest manifest = Rich();
  manifest.neighbor_original_ids = false;
  manifest.schema.node_types[1].has_time = false;
  for (Relation& relation : manifest.schema.relations) {
    relation.has_weight = false;
    relation.time = ListTime::kNone;
  }
  return manifest;
}

Manifest ManifestOfOneRelation() {
  Manifest manifest = Rich();
  manifest.schema.relations.erase(manifest.schema.relations.begin(),
                                  manifest.schema.relations.begin() + 2);
  return manifest;
}

JobSpec Job(std::string seed_type = "user") {
  JobSpec spec;
  spec.seed_type = std::move(seed_type);
  spec.fanouts = {3, 2};
  return spec;
}

JobSpec Walk(std::vector<std::string> metapath) {
  JobSpec spec = Job();
  spec.method = SampleMethod::kWalk;
  spec.fanouts = {};
  spec.walks = 2;
  spec.walk_length = 3;
  spec.metapath = std::move(metapath);
  return spec;
}

JobSpec Ppr() {
  JobSpec spec = Walk({kKnows});
  spec.method = SampleMethod::kPpr;
  spec.fanouts = {4, 1};
  return spec;
}

TEST(MethodJobTest, TemporalJobsAreDisjoint) {
  JobSpec spec = Job();
  spec.temporal = TemporalStrategy::kUniform;
  const auto job = ResolveJob(spec, Rich());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->spec.disjoint);
}

TEST(MethodJobTest, TemporalJobsMayHaveNoHops) {
  JobSpec spec = Job();
  spec.fanouts = {};
  spec.temporal = TemporalStrategy::kUniform;
  EXPECT_TRUE(ResolveJob(spec, Plain()).ok());
}

// The direction decides which end of a relation must have times.
TEST(MethodJobTest, TimesOfTheNeighborsCount) {
  Manifest manifest = Rich();
  JobSpec spec = Job();
  spec.fanouts = {};
  spec.relation_fanouts[kLikes] = {2};
  spec.temporal = TemporalStrategy::kLast;
  EXPECT_TRUE(ResolveJob(spec, manifest).ok());
  spec.direction = Direction::kOut;
  const absl::Status status = ResolveJob(spec, manifest).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST(MethodJobTest, StepsOfAWalkAreItsHops) {
  const auto job = ResolveJob(Walk({kLikes, kBuys}), Rich());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hops, 3);
  EXPECT_THAT(job->metapath, ElementsAre(1, 0));
  EXPECT_THAT(job->fanouts, Each(ElementsAre(0, 0, 0)));
}

TEST(MethodJobTest, OnlyRelationIsTheMetapath) {
  const auto job = ResolveJob(Walk({}), ManifestOfOneRelation());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->metapath, ElementsAre(0));
}

TEST(MethodJobTest, PprHasFanoutsOfItsRelationOnly) {
  const auto job = ResolveJob(Ppr(), Rich());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->fanouts, ElementsAre(ElementsAre(0, 0), ElementsAre(0, 0),
                                        ElementsAre(4, 1)));
  EXPECT_THAT(job->metapath, ElementsAre(2));
}

TEST(MethodJobTest, LargestWalksAreAllowed) {
  JobSpec spec = Ppr();
  spec.walk_length = 256;
  spec.walks = 4096;
  EXPECT_TRUE(ResolveJob(spec, Rich()).ok());
  spec.method = SampleMethod::kWalk;
  spec.fanouts = {};
  spec.walk_length = 255;
  EXPECT_TRUE(ResolveJob(spec, Rich()).ok());
}

TEST(MethodJobTest, LargestAndSmallestBiasesAreAllowed) {
  for (const double bias : {0.001, 1000.0}) {
    JobSpec spec = Walk({kKnows});
    spec.walk_p = bias;
    spec.walk_q = bias;
    EXPECT_TRUE(ResolveJob(spec, Rich()).ok()) << bias;
  }
}

// A dataset needs no original ids of neighbours, since its ids are original
// ids.
TEST(MethodJobTest, LaborWorksOnAnyDataset) {
  JobSpec spec = Job();
  spec.method = SampleMethod::kLabor;
  Manifest manifest = Plain();
  manifest.partitioning.method = "none";
  EXPECT_TRUE(ResolveJob(spec, manifest).ok());
}

// Relations that are not sampled need not have the columns that sampled ones
// need.
TEST(MethodJobTest, WeightsOfSampledRelationsCount) {
  Manifest manifest = Rich();
  manifest.schema.relations[0].has_weight = false;
  JobSpec spec = Job();
  spec.weighted = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(ResolveJob(spec, manifest).status()));
  spec.relation_fanouts[kBuys] = {0, 0};
  EXPECT_TRUE(ResolveJob(spec, manifest).ok());
  JobSpec walk = Walk({kKnows});
  walk.weighted = true;
  EXPECT_TRUE(ResolveJob(walk, manifest).ok());
  walk.metapath = {kLikes, kBuys};
  EXPECT_TRUE(absl::IsFailedPrecondition(ResolveJob(walk, manifest).status()));
}

// An induced subgraph has edges of all relations, whatever its hops read.
TEST(MethodJobTest, InducedJobsReadAllRelations) {
  Manifest manifest = Rich();
  manifest.schema.relations[0].has_in = false;
  JobSpec spec = Job();
  spec.fanouts = {};
  EXPECT_TRUE(ResolveJob(spec, manifest).ok());
  spec.method = SampleMethod::kInduced;
  const absl::Status status = ResolveJob(spec, manifest).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kBuys));
}

TEST(MethodJobTest, SeedTimesAreLookedUpWhereTheyAreKnown) {
  const Manifest manifest = Rich();
  JobSpec spec = Job("item");
  const auto needs = [&](const ExplicitSeeds& seeds) {
    const auto job = ResolveJob(spec, manifest);
    EXPECT_TRUE(job.ok()) << job.status();
    return NeedsSeedTimes(*job, manifest.schema, seeds);
  };
  ExplicitSeeds seeds;
  seeds.ids = {1, 2};
  EXPECT_FALSE(needs(seeds));
  spec.temporal = TemporalStrategy::kUniform;
  EXPECT_TRUE(needs(seeds));
  spec.seed_type = "user";
  EXPECT_FALSE(needs(seeds));
  spec.seed_type = "item";
  seeds.times = {5, 6};
  EXPECT_FALSE(needs(seeds));
}

TEST(CheckColumnsTest, AtLeastOneRelationMustHaveEdgeFeatures) {
  Manifest manifest = Rich();
  Columns columns;
  EXPECT_TRUE(CheckColumns(columns, manifest.schema).ok());
  columns.edge_features = true;
  const absl::Status status = CheckColumns(columns, manifest.schema);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              "edge_features: no relation of the graph has features");
  manifest.schema.relations[1].feature = {DType::kFloat32, {2}};
  EXPECT_TRUE(CheckColumns(columns, manifest.schema).ok());
}

struct Refusal {
  std::string name;
  JobSpec spec;
  std::string message;  // its beginning
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  Manifest manifest = Rich();
};

Refusal Refused(std::string name, JobSpec spec,
                const std::function<void(JobSpec&)>& spoil,
                std::string message) {
  spoil(spec);
  return {std::move(name), std::move(spec), std::move(message)};
}

// A refusal because the store lacks something.
Refusal Lacking(std::string name, JobSpec spec,
                const std::function<void(JobSpec&)>& spoil,
                std::string message) {
  Refusal refusal =
      Refused(std::move(name), std::move(spec), spoil, std::move(message));
  refusal.code = absl::StatusCode::kFailedPrecondition;
  refusal.manifest = Plain();
  return refusal;
}

std::vector<Refusal> Exclusions() {
  const auto excluded = [](const char* name, JobSpec spec, auto spoil,
                           const char* a, const char* b) {
    return Refused(name, std::move(spec), spoil,
                   std::string(a) + " and " + b + " cannot be used together");
  };
  return {
      excluded(
          "weighted_labor", Job(),
          [](JobSpec& s) {
            s.weighted = true;
            s.method = SampleMethod::kLabor;
          },
          "weighted", "method labor"),
      excluded(
          "weighted_last", Job(),
          [](JobSpec& s) {
            s.weighted = true;
            s.temporal = TemporalStrategy::kLast;
          },
          "weighted", "temporal last"),
      excluded(
          "last_replace", Job(),
          [](JobSpec& s) {
            s.replace = true;
            s.temporal = TemporalStrategy::kLast;
          },
          "temporal last", "replace"),
      excluded(
          "labor_replace", Job(),
          [](JobSpec& s) {
            s.replace = true;
            s.method = SampleMethod::kLabor;
          },
          "method labor", "replace"),
      excluded(
          "labor_last", Job(),
          [](JobSpec& s) {
            s.method = SampleMethod::kLabor;
            s.temporal = TemporalStrategy::kLast;
          },
          "method labor", "temporal last"),
      excluded(
          "temporal_walk", Walk({kKnows}),
          [](JobSpec& s) { s.temporal = TemporalStrategy::kUniform; },
          "temporal", "method walk or ppr"),
      excluded(
          "temporal_ppr", Ppr(),
          [](JobSpec& s) { s.temporal = TemporalStrategy::kUniform; },
          "temporal", "method walk or ppr"),
      excluded(
          "weighted_p", Walk({kKnows}),
          [](JobSpec& s) {
            s.weighted = true;
            s.walk_p = 2;
          },
          "weighted", "walk_p"),
      excluded(
          "weighted_q", Walk({kKnows}),
          [](JobSpec& s) {
            s.weighted = true;
            s.walk_q = 2;
          },
          "weighted", "walk_q"),
      excluded(
          "replace_walk", Walk({kKnows}), [](JobSpec& s) { s.replace = true; },
          "replace", "method walk or ppr"),
      excluded(
          "replace_ppr", Ppr(), [](JobSpec& s) { s.replace = true; }, "replace",
          "method walk or ppr"),
      excluded(
          "fanouts_walk", Walk({kKnows}), [](JobSpec& s) { s.fanouts = {2}; },
          "fanouts", "method walk"),
      excluded(
          "disjoint_ppr", Ppr(), [](JobSpec& s) { s.disjoint = true; },
          "disjoint", "method ppr")};
}

std::vector<Refusal> Walks() {
  const auto walks = [](int walks, int length) {
    return [=](JobSpec& s) {
      s.walks = walks;
      s.walk_length = length;
    };
  };
  Refusal unknown = Refused(
      "unknown_relation", Walk({"user__sells__item"}), [](JobSpec&) {}, "");
  unknown.code = absl::StatusCode::kNotFound;
  return {
      Refused("no_walks", Walk({kKnows}), walks(0, 3),
              "walks 0 is out of range: 1 to 349525 walks of 3 steps"),
      Refused("negative_walks", Walk({kKnows}), walks(-1, 3),
              "walks -1 is out of range: 1 to "),
      Refused("no_steps", Ppr(), walks(3, 0),
              "walk_length 0 is out of range: 1 to 256"),
      Refused("many_steps", Ppr(), walks(3, 257),
              "walk_length 257 is out of range: 1 to 256"),
      Refused("many_walks", Ppr(), walks(4097, 256),
              "walks 4097 is out of range: 1 to 4096 walks of 256 steps, "
              "1048576 steps in all"),
      Refused("huge_walks", Ppr(), walks(std::numeric_limits<int>::max(), 256),
              "walks 2147483647 is out of range: 1 to 4096 "),
      Refused("steps_of_walks", Walk({kKnows}), walks(1, 256),
              "walk_length 256 is out of range: 1 to 255 for method walk"),
      Refused(
          "no_p", Walk({kKnows}), [](JobSpec& s) { s.walk_p = 0; },
          "walk_p 0 is out of range: 0.001 to 1000"),
      Refused(
          "large_q", Walk({kKnows}), [](JobSpec& s) { s.walk_q = 1001; },
          "walk_q 1001 is out of range: 0.001 to 1000"),
      Refused(
          "p_of_two_types", Walk({kLikes, kBuys}),
          [](JobSpec& s) { s.walk_p = 2; },
          "walk_p 2: needs a metapath of one relation that joins a node type "
          "to itself"),
      Refused(
          "q_of_two_relations", Walk({kKnows, kKnows}),
          [](JobSpec& s) { s.walk_q = 0.5; },
          "walk_q 0.5: needs a metapath of one relation"),
      Refused(
          "restart_below", Ppr(), [](JobSpec& s) { s.restart = -0.5; },
          "restart -0.5 is out of range: 0 to 1"),
      Refused(
          "restart_above", Ppr(), [](JobSpec& s) { s.restart = 1.5; },
          "restart 1.5 is out of range: 0 to 1"),
      Refused(
          "restart_nan", Ppr(),
          [](JobSpec& s) {
            s.restart = std::numeric_limits<double>::quiet_NaN();
          },
          "restart nan is out of range: 0 to 1"),
      unknown,
      Refused(
          "no_metapath", Walk({}), [](JobSpec&) {},
          "metapath is needed: the graph has 3 relations"),
      Refused(
          "metapath_start", Walk({kBuys}), [](JobSpec&) {},
          "metapath: step 0 follows user__buys__item, but the walk is at "
          "a node of type user"),
      Refused(
          "metapath_middle", Walk({kLikes, kKnows}), [](JobSpec&) {},
          "metapath: step 1 follows user__knows__user, but the walk is "
          "at a node of type item"),
      Refused(
          "metapath_again", Walk({kLikes, kBuys, kLikes}),
          [](JobSpec& s) { s.walk_length = 4; },
          "metapath: step 3 follows item__likes__user, but the walk is "
          "at a node of type item"),
      Refused(
          "metapath_out", Walk({kLikes}),
          [](JobSpec& s) {
            s.direction = Direction::kOut;
            s.walk_length = 1;
          },
          "metapath: step 0 follows item__likes__user"),
      Refused(
          "ppr_metapath", Ppr(),
          [](JobSpec& s) {
            s.metapath = {kLikes, kBuys};
          },
          "method ppr: needs a metapath of one relation that joins a node "
          "type to itself"),
      Refused(
          "ppr_relation", Ppr(),
          [](JobSpec& s) {
            s.metapath = {kLikes};
            s.walk_length = 1;
          },
          "method ppr: needs a metapath of one relation that joins a node "
          "type to itself")};
}

// Options of walks, which other methods would ignore.
std::vector<Refusal> OthersOptions() {
  JobSpec induced = Job();
  induced.method = SampleMethod::kInduced;
  return {Refused(
              "walks_of_uniform", Job(), [](JobSpec& s) { s.walks = 3; },
              "walks needs method walk or ppr"),
          Refused(
              "walk_length_of_induced", induced,
              [](JobSpec& s) { s.walk_length = -7; },
              "walk_length needs method walk or ppr"),
          Refused(
              "p_of_ppr", Ppr(), [](JobSpec& s) { s.walk_p = 2; },
              "walk_p needs method walk"),
          Refused(
              "q_of_uniform", Job(), [](JobSpec& s) { s.walk_q = 2; },
              "walk_q needs method walk"),
          Refused(
              "metapath_of_uniform", Job(),
              [](JobSpec& s) { s.metapath = {"bogus"}; },
              "metapath needs method walk or ppr")};
}

std::vector<Refusal> Lacks() {
  return {Lacking(
              "weights", Job(), [](JobSpec& s) { s.weighted = true; },
              "weighted: the edges of user__buys__item have no weights"),
          Lacking(
              "weights_of_walks", Walk({kKnows}),
              [](JobSpec& s) { s.weighted = true; },
              "weighted: the edges of user__knows__user have no weights"),
          Lacking(
              "times", Job(),
              [](JobSpec& s) { s.temporal = TemporalStrategy::kUniform; },
              "temporal: none of the edges and nodes that are sampled have "
              "times"),
          Lacking(
              "original_ids", Job(),
              [](JobSpec& s) { s.method = SampleMethod::kLabor; },
              "method labor: the store has no original ids of neighbours")};
}

std::vector<Refusal> Refusals() {
  std::vector<Refusal> all = Exclusions();
  for (const auto& more : {Walks(), OthersOptions(), Lacks()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class RefusedJobTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedJobTest, SaysWhatAndWhatToDo) {
  const Refusal& refusal = GetParam();
  const auto job = ResolveJob(refusal.spec, refusal.manifest);
  EXPECT_EQ(job.status().code(), refusal.code) << job.status();
  EXPECT_THAT(std::string(job.status().message()), StartsWith(refusal.message));
}

INSTANTIATE_TEST_SUITE_P(Jobs, RefusedJobTest, ::testing::ValuesIn(Refusals()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace millrace
