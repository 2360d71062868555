// SPDX-License-Identifier: Apache-2.0
// The plans that MakeRunPlan derives from options and a manifest;
// trainer_options_test covers refusals.
#include "client/train/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace millrace::testing
