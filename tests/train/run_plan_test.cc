// SPDX-License-Identifier: Apache-2.0
// The plans that MakeRunPlan derives from options and a manifest;
// trainer_options_test covers refusals.
#include "client/train/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "tests/support/test_directory.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::StartsWith;

absl::StatusOr<RunPlan> PlanOf(const TestGraph& graph,
                               const TrainOptions& options) {
  return MakeRunPlan(options, Serve(graph, "plan")->manifest());
}

TrainOptions TwoPairsRun() {
  TrainOptions options = SmallRun();
  options.job.seed_kind = SeedKind::kEdge;
  options.job.negatives = {NegativeMode::kBinary, 1};
  options.task.kind = TaskKind::kLink;
  options.task.metric = MetricKind::kRocAuc;
  options.task.negatives = NegativeMode::kBinary;
  options.model.decoder = DecoderKind::kDot;
  options.seeds.emplace().ids = {0, 1};
  options.seeds->dst = {2, 3};
  return options;
}

TEST(RunPlanTest, FillsInOptionsFromTheGraph) {
  TrainOptions options = SmallRun();
  options.ranks_on_host = 3;
  const auto plan = PlanOf(ClassGraph(100, 20), options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->seeds_name, "node");
  EXPECT_EQ(plan->shape.types[0].features, 6);
  EXPECT_EQ(plan->options.model.in, 6);
  EXPECT_EQ(plan->options.evaluation.inference.ranks_on_host, 3);
  EXPECT_EQ(plan->learning_rate.At(0), options.optimizer.lr);
  EXPECT_EQ(plan->seeds_checksum, 0u);
}

TEST(RunPlanTest, NamesTheRelationOfEdges) {
  const auto plan = PlanOf(ClassGraph(100, 20), TwoPairsRun());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->seeds_name, StartsWith("node__"));
  EXPECT_EQ(plan->shape.source_type, plan->shape.seed_type);
  EXPECT_NE(plan->seeds_checksum, 0u);
}

TEST(RunPlanTest, NamesTheSplitsThatAreUsed) {
  TrainOptions options = SmallRun();
  const TestGraph graph = ClassGraph(100, 20);
  EXPECT_THAT(PlanOf(graph, options).value().splits,
              ElementsAre(Key("split test of node"), Key("split train of node"),
                          Key("split valid of node")));
  options.seeds.emplace().ids = {1, 2};
  options.test_split = "train";
  options.job.split = "test";
  EXPECT_THAT(
      PlanOf(graph, options).value().splits,
      ElementsAre(Key("split train of node"), Key("split valid of node")));
}

TEST(RunPlanTest, AGivenOrderIsNotShuffled) {
  TrainOptions options = SmallRun();
  options.order = "not read yet";
  EXPECT_FALSE(
      PlanOf(ClassGraph(100, 20), options).value().options.job.shuffle);
}

TEST(RunPlanTest, RefusesAScheduleBeforeAnythingIsRead) {
  TrainOptions options = SmallRun();
  options.lr_schedule = "sometimes";
  options.checkpoint = (TestDirectory("plan") / "never").string();
  const absl::Status status = PlanOf(ClassGraph(100, 20), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), StartsWith("lr_schedule"));
  EXPECT_FALSE(std::filesystem::exists(options.checkpoint));
}

TEST(RunPlanTest, LinkTasksNeedPairsThatAreNotEdges) {
  TrainOptions options = TwoPairsRun();
  options.job.negatives = {};
  options.task.negatives = NegativeMode::kNone;
  const absl::Status status = PlanOf(ClassGraph(100, 20), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("task link: also needs pairs that are not edges"));
}

TEST(RunPlanTest, SeedsAndTaskBelongTogether) {
  TrainOptions options = SmallRun();
  options.task.kind = TaskKind::kLink;
  EXPECT_THAT(
      std::string(PlanOf(ClassGraph(100, 20), options).status().message()),
      StartsWith("task link needs seed_kind edge"));
}

TEST(RunPlanTest, EdgesAreLearnedByTheTaskLink) {
  TrainOptions options = TwoPairsRun();
  options.task.kind = TaskKind::kSingle;
  const absl::Status status = PlanOf(ClassGraph(100, 20), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "seed_kind edge needs task link");
}

TEST(RunPlanTest, ATemporalOrderNeedsTimes) {
  TestGraph graph = ClassGraph(100, 20);
  graph.types[0].time.assign(100, 5);
  TrainOptions options = SmallRun();
  options.job.temporal = TemporalStrategy::kUniform;
  options.evaluation.kind = InferenceKind::kSampled;
  EXPECT_TRUE(PlanOf(graph, options).ok());
  options.order = "not read yet";
  const absl::Status status = PlanOf(graph, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "order: a temporal job needs the times of the "
            "seeds");
  EXPECT_EQ(ReasonOf(status), "order_without_times");
  options.seeds.emplace().ids = {1, 2};
  options.seeds->times = {3, 4};
  EXPECT_TRUE(PlanOf(graph, options).ok());
}

TEST(RunPlanTest, OnlyHopsOfTheSamplerLimitTheLayers) {
  const TestGraph graph = ClassGraph(100, 20);
  TrainOptions options = SmallRun();
  options.model.layers = 3;
  EXPECT_EQ(PlanOf(graph, options).status().message(),
            "layers 3: does not fit the 2 numbers of fanouts");
  // An induced subgraph has all edges between its nodes.
  options.job.method = SampleMethod::kInduced;
  EXPECT_TRUE(PlanOf(graph, options).ok());
  options = SmallRun();
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {5, 5, 5};
  EXPECT_EQ(PlanOf(graph, options).status().message(),
            "layers 2: does not fit the 3 numbers of eval_fanouts");
  options.evaluation.fanouts = {5, 5};
  EXPECT_TRUE(PlanOf(graph, options).ok());
}

// Batches follow the partitions only if seeds are taken from them in turn.
TEST(RunPlanTest, ALocalOrderOfSeedsDependsOnTheStore) {
  Manifest manifest = Serve(ClassGraph(100, 20), "plan_local", 2)->manifest();
  manifest.fingerprint = "store";
  manifest.dataset_fingerprint = "dataset";
  TrainOptions options = SmallRun();
  EXPECT_EQ(MakeRunPlan(options, manifest)->dataset, "dataset");
  options.job.seed_order = SeedOrder::kLocal;
  EXPECT_EQ(MakeRunPlan(options, manifest)->dataset, "store");
}

TEST(RunPlanTest, EveryColumnOfListedSeedsCounts) {
  const auto source = Serve(ClassGraph(100, 20), "plan_columns");
  std::set<uint64_t> checksums;
  const auto add = [&](const auto& change) {
    TrainOptions options = TwoPairsRun();
    change(*options.seeds);
    const auto plan = MakeRunPlan(options, source->manifest());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(checksums.insert(plan->seeds_checksum).second);
  };
  add([](ExplicitSeeds&) {});
  add([](ExplicitSeeds& seeds) { seeds.ids = {0, 2}; });
  add([](ExplicitSeeds& seeds) { seeds.dst = {2, 1}; });
  add([](ExplicitSeeds& seeds) {
    seeds.ids = {0, 1, 2};
    seeds.dst = {3, 4, 5};
  });
  add([](ExplicitSeeds& seeds) { std::swap(seeds.ids, seeds.dst); });
}

// Splits of edges: "told" has labels, "given" has negatives, "both" has both.
TestGraph SplitsOfEdges() {
  TestGraph graph = ClassGraph(100, 20);
  const auto add = [&graph](const char* name, bool labels, bool negatives) {
    EdgeSplitColumns split;
    split.name = name;
    split.src = Array::Adopt(std::vector<int64_t>{0, 1});
    split.dst = Array::Adopt(std::vector<int64_t>{2, 3});
    if (labels) split.label = Array::Adopt(std::vector<float>{1, 0});
    if (negatives) {
      split.negative = Array::Adopt(std::vector<int64_t>{5, 6}, {2, 1});
    }
    graph.edge_splits.push_back(split);
  };
  add("bare", false, false);
  add("told", true, false);
  add("given", false, true);
  add("both", true, true);
  return graph;
}

TEST(RunPlanTest, LinksNeedNegativesOrLabelsButNotBoth) {
  const auto source = Serve(SplitsOfEdges(), "plan_edges");
  const auto plan = [&](const char* split, NegativeMode mode, LinkLoss loss) {
    TrainOptions options = TwoPairsRun();
    options.seeds.reset();
    options.job.split = split;
    options.job.negatives = {mode, 1};
    options.task.negatives = mode;
    options.task.loss = loss;
    const absl::Status status =
        MakeRunPlan(options, source->manifest()).status();
    return ReasonOf(status) + std::string(status.ok() ? "ok" : "");
  };
  constexpr auto kNone = NegativeMode::kNone;
  constexpr auto kBinary = NegativeMode::kBinary;
  constexpr auto kTriplet = NegativeMode::kTriplet;
  constexpr auto kBce = LinkLoss::kBce;
  constexpr auto kSoftmax = LinkLoss::kSoftmax;
  EXPECT_EQ(plan("bare", kNone, kBce), "no_negatives");
  EXPECT_EQ(plan("told", kNone, kBce), "ok");
  EXPECT_EQ(plan("given", kNone, kBce), "ok");
  EXPECT_EQ(plan("both", kNone, kBce), "labels_and_negatives");
  EXPECT_EQ(plan("bare", kBinary, kBce), "ok");
  EXPECT_EQ(plan("told", kBinary, kBce), "labels_name_negatives");
  EXPECT_EQ(plan("bare", kTriplet, kSoftmax), "ok");
  EXPECT_EQ(plan("bare", kBinary, kSoftmax), "loss_without_negatives");
  EXPECT_EQ(plan("told", kNone, kSoftmax), "loss_without_negatives");
  EXPECT_EQ(plan("given", kNone, kSoftmax), "ok");
}

TEST(RunPlanTest, NamesWhatLinksLack) {
  const TestGraph graph = SplitsOfEdges();
  const auto message = [&](const TrainOptions& options) {
    return std::string(PlanOf(graph, options).status().message());
  };
  TrainOptions options = TwoPairsRun();
  options.model.decoder = DecoderKind::kNone;
  EXPECT_EQ(message(options), "task link needs decoder");
  options = TwoPairsRun();
  options.order = "o.npy";
  EXPECT_EQ(message(options), "order: it names nodes and graphs, not edges");
  options = TwoPairsRun();
  options.job.negatives = {};
  options.task.negatives = NegativeMode::kNone;
  EXPECT_EQ(
      message(options),
      "task link: also needs pairs that are not edges, but none are to be "
      "drawn, and the listed seeds have neither negatives nor labels");
  options.seeds.reset();
  options.job.split = "bare";
  EXPECT_EQ(
      message(options),
      "task link: also needs pairs that are not edges, but none are to be "
      "drawn, and split bare has neither negatives nor labels");
  options.job.split = "absent";
  EXPECT_TRUE(absl::IsNotFound(PlanOf(graph, options).status()));
}

// Listed seeds have no types, which only the decoder distmult reads.
TEST(RunPlanTest, ListedEdgesHaveNoTypesForADecoder) {
  TestGraph graph = ClassGraph(100, 20);
  TrainOptions options = TwoPairsRun();
  options.model.decoder = DecoderKind::kDistMult;
  EXPECT_TRUE(PlanOf(graph, options).ok());
  graph.relations[0].type.assign(graph.relations[0].edges.size(), 1);
  const absl::Status status = PlanOf(graph, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "seeds: they have no edge types, which the decoder distmult needs "
            "here");
  EXPECT_EQ(ReasonOf(status), "seeds_without_edge_types");
  options.model.decoder = DecoderKind::kDot;
  EXPECT_TRUE(PlanOf(graph, options).ok());
}

TEST(RunPlanTest, NamesWhatNodesLack) {
  TestGraph graph = ClassGraph(100, 20);
  graph.types[0].label = {};
  absl::Status status = PlanOf(graph, SmallRun()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "node type \"node\" has no labels");
  EXPECT_EQ(ReasonOf(status), "no_labels");
  graph.types[0].feature = {};
  status = PlanOf(graph, SmallRun()).status();
  EXPECT_EQ(status.message(), "node type \"node\" has no features");
  EXPECT_EQ(ReasonOf(status), "no_features");
}

}  // namespace
}  // namespace millrace::testing
