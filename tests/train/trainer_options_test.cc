// SPDX-License-Identifier: Apache-2.0
// What a Trainer refuses before it trains, and what it accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "client/train/trainer.h"
#include "common/base/field_error.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The result of Create, before any step.
absl::Status CreateStatus(const std::shared_ptr<BatchSource>& source,
                          const TrainOptions& options) {
  absl::Status status;
  RunRanks(1, [&](Collectives& collectives) {
    status = Trainer::Create(source, collectives, options).status();
  });
  return status;
}

absl::Status CreateStatus(const TestGraph& graph, const TrainOptions& options) {
  return CreateStatus(Serve(graph, "options"), options);
}

void ExpectRefusal(const absl::Status& status, const std::string& message) {
  EXPECT_THAT(std::string(status.message()), StartsWith(message));
  // The programs say what to do about a field.
  EXPECT_TRUE(HasAdvice(status) || GetFieldError(status).has_value() ||
              !ReasonOf(status).empty())
      << status;
}

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

TEST(TrainerOptionsTest, CheckpointOptionsNeedAFolder) {
  for (const char* which : {"every", "best", "resume"}) {
    TrainOptions options;
    if (which[0] == 'e') options.checkpoint_every = 2;
    if (which[0] == 'b') options.keep_best = true;
    if (which[0] == 'r') options.resume = true;
    EXPECT_TRUE(absl::IsInvalidArgument(CheckComplete(options))) << which;
    const absl::Status status = CreateStatus(ClassGraph(80, 40), options);
    EXPECT_EQ(GetFieldError(status)->other_field, "checkpoint") << status;
    EXPECT_EQ(ReasonOf(status), "no_checkpoint_folder");
    options.checkpoint = "folder";
    EXPECT_TRUE(CheckComplete(options).ok()) << which;
  }
}

// Otherwise the digests would cover features other than those trained on.
TEST(TrainerOptionsTest, AConsumedLogHoldsFeaturesAsTheyAreStored) {
  TrainOptions options;
  options.consumed_log = "log";
  EXPECT_TRUE(CheckComplete(options).ok());
  options.feature_dtype = DType::kBFloat16;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckComplete(options)));
  ExpectRefusal(CreateStatus(ClassGraph(80, 40), options), "consumed_log: ");
}

// 20 graphs of 4 nodes; those from number `full` on are empty.
TestGraph Collection(int64_t full = 20) {
  TestGraph graph = ClassGraph(80, 40);
  std::vector<int64_t> label;
  std::vector<std::pair<int64_t, int64_t>> members;
  for (int64_t g = 0; g < 20; ++g) label.push_back(g % 2);
  for (int64_t v = 0; v < 4 * full; ++v) members.emplace_back(v, v / 4);
  graph.types[0].label = {};
  graph.types.push_back(
      {.name = "graph", .count = 20, .label = Array::Adopt(std::move(label))});
  graph.relations.push_back({.name = "in", .dst = "graph", .edges = members});
  graph.splits = {{.type = "graph", .name = "train", .ids = Range(0, 20)}};
  return graph;
}

TrainOptions GraphRun() {
  TrainOptions options = SmallRun();
  options.job.seed_kind = SeedKind::kGraph;
  options.job.fanouts.clear();
  options.evaluation.kind = InferenceKind::kSampled;
  return options;
}

TrainOptions FourPairsRun() {
  TrainOptions options = SmallRun();
  options.job.seed_kind = SeedKind::kEdge;
  options.job.negatives = {NegativeMode::kBinary, 1};
  options.job.exclude = ExcludeSeedEdges::kReverse;
  options.task.kind = TaskKind::kLink;
  options.task.metric = MetricKind::kRocAuc;
  options.task.negatives = NegativeMode::kBinary;
  options.model.decoder = DecoderKind::kDot;
  options.seeds.emplace().ids = {0, 1, 2, 3};
  options.seeds->dst = {4, 5, 6, 7};
  return options;
}

TrainOptions TemporalRun() {
  TrainOptions options = SmallRun();
  options.job.temporal = TemporalStrategy::kUniform;
  options.evaluation.kind = InferenceKind::kSampled;
  options.seeds.emplace().ids = Range(0, 20);
  options.seeds->times.assign(20, 60);
  return options;
}

TEST(TrainerOptionsTest, TrainsOnSeedsWithTimes) {
  TestGraph graph = ClassGraph(100, 20);
  graph.types[0].time = Range(0, 100);
  const auto source = Serve(graph, "timed_seeds");
  EXPECT_EQ(TrainRanks(2, source, TemporalRun()).size(), 2u);
}

TEST(TrainerOptionsTest, RefusesTimesWithoutTemporal) {
  TrainOptions options = TemporalRun();
  options.job.temporal = TemporalStrategy::kNone;
  EXPECT_THAT(std::string(CreateStatus(ClassGraph(100, 20), options).message()),
              HasSubstr("the job is not temporal"));
}

TEST(TrainerOptionsTest, EvaluatesOnlyNodesThatHaveTimes) {
  TestGraph graph = ClassGraph(100, 20);
  auto& relation = graph.relations[0];
  relation.time = Range(0, static_cast<int64_t>(relation.edges.size()));
  ExpectRefusal(CreateStatus(graph, TemporalRun()),
                "temporal: evaluation and prediction sample each node at its "
                "own time, but node type ");
  graph.splits.resize(1);
  const auto source = Serve(graph, "times_of_edges");
  EXPECT_EQ(TrainRanks(1, source, TemporalRun()).size(), 2u);
  TrainOptions options = TemporalRun();
  options.predict = (TestDirectory("timeless") / "rows.npy").string();
  ExpectRefusal(CreateStatus(source, options), "temporal: evaluation");
}

TEST(TrainerOptionsTest, DifferentSeedsMakeADifferentJob) {
  const auto source = Serve(ClassGraph(200, 50), "other_seeds");
  TrainOptions options = SmallRun();
  options.seeds.emplace().ids = Range(0, 40);
  options.checkpoint = (TestDirectory("other_seeds_run") / "run").string();
  TrainRanks(1, source, options);
  options.resume = true;
  EXPECT_TRUE(CreateStatus(source, options).ok());
  options.seeds->ids = Range(1, 41);
  const absl::Status status = CreateStatus(source, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(": seeds "));
}

TEST(TrainerOptionsTest, DifferentTimesOrEndpointsMakeDifferentSeeds) {
  const auto resumed = [](const TestGraph& graph, TrainOptions options,
                          std::vector<int64_t> ExplicitSeeds::*column) {
    const auto source = Serve(graph, "other_column");
    options.checkpoint = (TestDirectory("other_column_run") / "run").string();
    TrainRanks(1, source, options);
    options.resume = true;
    ++((*options.seeds).*column)[2];
    return CreateStatus(source, options);
  };
  TestGraph graph = ClassGraph(100, 20);
  graph.types[0].time = Range(0, 100);
  for (const absl::Status& status :
       {resumed(graph, TemporalRun(), &ExplicitSeeds::times),
        resumed(graph, FourPairsRun(), &ExplicitSeeds::dst)}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(": seeds "));
  }
}

TEST(TrainerOptionsTest, RanksMustHaveTheSameSeeds) {
  const auto source = Serve(ClassGraph(100, 50), "seeds_of_ranks");
  std::vector<TrainOptions> runs(2, SmallRun());
  runs[0].seeds.emplace().ids = Range(0, 20);
  runs[1].seeds.emplace().ids = Range(1, 21);
  ExpectRefusal(CreateTrainers({source, source}, runs)[1],
                "the list of seeds of rank 1 differs from rank 0's");
}

TEST(TrainerOptionsTest, ListsTheAvailableSplits) {
  TestGraph graph = ClassGraph(100, 20);
  graph.splits[0].name = "fold0";
  const absl::Status status = CreateStatus(graph, SmallRun());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  ExpectRefusal(
      status,
      "node type node has no split \"train\"; it has: fold0, valid, test");
  graph.splits.clear();
  ExpectRefusal(CreateStatus(graph, SmallRun()),
                "node type node has no split \"train\"");
  TrainOptions options = FourPairsRun();
  options.seeds.reset();
  EXPECT_THAT(std::string(CreateStatus(graph, options).message()),
              HasSubstr("has no split \"train\" of edges"));
}

TEST(TrainerOptionsTest, NeedsSeeds) {
  TestGraph graph = ClassGraph(100, 20);
  TrainOptions options = SmallRun();
  options.seeds.emplace();
  ExpectRefusal(CreateStatus(graph, options), "seeds: has no seeds");
  graph.splits[0].ids.clear();
  ExpectRefusal(CreateStatus(graph, SmallRun()),
                "split \"train\" of node has no seeds");
}

TEST(TrainerOptionsTest, NeedsLabels) {
  TestGraph graph = ClassGraph(100, 20);
  std::vector<int64_t> label(100, 3);
  std::fill_n(label.begin(), 20, -1);
  graph.types[0].label = Array::Adopt(std::vector<int64_t>(label));
  TrainOptions options = SmallRun();
  const absl::Status none = CreateStatus(graph, options);
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  ExpectRefusal(none,
                "split \"train\" of node has 20 seeds, but none of them has a "
                "label");
  EXPECT_EQ(ReasonOf(none), "unlabelled_split");
  options.seeds.emplace().ids = {1, 2, 3};
  ExpectRefusal(CreateStatus(graph, options),
                "seeds: has 3 seeds, but none of them has a label\n");
  // Nothing is learned; the run only evaluates.
  options.epochs = 0;
  EXPECT_TRUE(CreateStatus(graph, options).ok());
  graph.types[0].label = Array::Adopt(std::vector<int64_t>(100, -1));
  ExpectRefusal(CreateStatus(graph, options), "seeds: has 3 seeds");
  // One label is enough.
  options.epochs = 1;
  label[3] = 0;
  graph.types[0].label = Array::Adopt(std::move(label));
  EXPECT_TRUE(CreateStatus(graph, options).ok());
}

TEST(TrainerOptionsTest, RefusesImpossibleEvaluation) {
  TrainOptions options = GraphRun();
  options.evaluation.fanouts = {3};
  ExpectRefusal(CreateStatus(Collection(), options),
                "eval_fanouts and seed_kind graph cannot be used together");
  options = GraphRun();
  options.evaluation.kind = InferenceKind::kFull;
  ExpectRefusal(CreateStatus(Collection(), options), "inference full");
  for (const Fanouts& fanouts : {Fanouts{3}, Fanouts{3, 3}}) {
    options = SmallRun();
    options.evaluation.fanouts = fanouts;
    ExpectRefusal(CreateStatus(ClassGraph(100, 20), options),
                  "eval_fanouts needs inference sampled");
  }
  options = SmallRun();
  options.job.fanouts.clear();
  options.job.method = SampleMethod::kWalk;
  options.job.walks = options.job.walk_length = 2;
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {3, 3};
  ExpectRefusal(CreateStatus(ClassGraph(100, 20), options),
                "eval_fanouts and method walk cannot be used together");
}

TEST(TrainerOptionsTest, RefusesImpossiblePrediction) {
  const TestGraph graph = ClassGraph(100, 20);
  const std::string file = (TestDirectory("could_not") / "rows.npy").string();
  TrainOptions options = SmallRun();
  options.predict = file;
  options.predict_embeddings = true;
  EXPECT_TRUE(CreateStatus(graph, options).ok());
  options.evaluation.kind = InferenceKind::kSampled;
  ExpectRefusal(CreateStatus(graph, options),
                "predict_embeddings needs inference full");
  options.evaluation.kind = InferenceKind::kFull;
  options.job.fanouts = {3};
  options.model.layers = 1;
  ExpectRefusal(CreateStatus(graph, options),
                "predict_embeddings: embeddings are the input of the last "
                "layer of at least 2, but layers is 1");
  options = GraphRun();
  options.predict = file;
  EXPECT_TRUE(CreateStatus(Collection(), options).ok());
  options.predict_embeddings = true;
  ExpectRefusal(CreateStatus(Collection(), options),
                "predict_embeddings: they are rows of nodes, not of graphs");
  options = FourPairsRun();
  options.predict = file;
  EXPECT_TRUE(CreateStatus(graph, options).ok());
  options.evaluation.kind = InferenceKind::kSampled;
  ExpectRefusal(CreateStatus(graph, options), "predict needs inference full");
}

// Some of the batches, of one graph each, contain no node.
TEST(TrainerOptionsTest, TrainsOnGraphsWithoutNodes) {
  const auto source = Serve(Collection(/*full=*/17), "empty_graphs");
  for (const int world : {1, 2}) {
    for (const NormKind norm : {NormKind::kNone, NormKind::kBatch}) {
      TrainOptions options = GraphRun();
      options.job.batch_size = 1;
      options.model.graph_head = false;
      options.model.norm = norm;
      EXPECT_EQ(TrainRanks(world, source, options).size(), 2u);
    }
  }
}

}  // namespace
}  // namespace millrace::testing
