// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStdout;

TEST(MeanLossTest, IsOverLabelledValues) {
  EXPECT_EQ(MeanLoss({.loss = 6, .labelled = 4, .correct = 1}), 1.5);
  EXPECT_EQ(MeanLoss({.loss = 6}), std::nullopt);
}

class RunLogsTest : public ::testing::Test {
 protected:
  std::vector<nlohmann::json> Lines(const std::string& path) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  const std::filesystem::path folder_ = TestDirectory("run_logs");
  TrainOptions options_;
};

TEST_F(RunLogsTest, LogsEverySoManySteps) {
  options_.metrics_json = (folder_ / "metrics").string();
  options_.log_every = 2;
  RunRanks(1, [&](Collectives& collectives) {
    RunLogs logs(options_, collectives);
    RunState state;
    ASSERT_TRUE(logs.Open(/*resumed=*/false, state).ok());
    state.epoch = 3;
    logs.BeginEpoch(state, 4);
    for (state.step = 1; state.step <= 4; ++state.step) {
      const StepSums sums = {.loss = 3.0 * state.step,
                             .labelled = state.step == 4 ? 0 : 2};
      ASSERT_TRUE(logs.LogStep(state, sums).ok());
    }
    logs.EndSteps();
    ASSERT_EQ(logs.history().size(), 2u);
    EXPECT_EQ(logs.history()[0].epoch, 3u);
    EXPECT_EQ(logs.history()[0].step, 2u);
    EXPECT_EQ(logs.history()[0].loss, 3.0);
    EXPECT_EQ(logs.history()[1].step, 4u);
    EXPECT_EQ(logs.history()[1].loss, std::nullopt);
  });
  const auto lines = Lines(options_.metrics_json);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["step"], 2);
  EXPECT_EQ(lines[0]["loss"], 3.0);
  EXPECT_TRUE(lines[1]["loss"].is_null());
}

TEST_F(RunLogsTest, OnlyTheLeaderPrints) {
  options_.metrics_json = (folder_ / "metrics").string();
  CaptureStdout();
  RunRanks(2, [&](Collectives& collectives) {
    TrainOptions options = options_;
    if (collectives.rank() == 1) options.metrics_json += ".1";
    RunLogs logs(options, collectives);
    RunState state;
    ASSERT_TRUE(logs.Open(/*resumed=*/false, state).ok());
    MetricsRecord record;
    record.epoch = 7;
    ASSERT_TRUE(logs.LogEpoch(record).ok());
    EXPECT_EQ(logs.history().size(), 1u);
    state.best_valid = 0.5;
    ASSERT_TRUE(logs.LogBest(state, record).ok());
  });
  EXPECT_EQ(GetCapturedStdout(),
            "epoch 7  0.00 s (waiting 0.00, evaluating 0.00)\n"
            "best epoch 0  valid 0.5000\n");
  EXPECT_FALSE(std::filesystem::exists(options_.metrics_json + ".1"));
  EXPECT_EQ(Lines(options_.metrics_json).size(), 2u);
}

TEST_F(RunLogsTest, TheLastLineIsOfTheBestEpoch) {
  options_.metrics_json = (folder_ / "metrics").string();
  CaptureStdout();
  RunRanks(1, [&](Collectives& collectives) {
    RunLogs logs(options_, collectives);
    RunState state;
    ASSERT_TRUE(logs.Open(/*resumed=*/false, state).ok());
    MetricsRecord record;
    record.epoch = 9;
    record.eval_seconds = 2;
    // There is no best epoch without valid.
    ASSERT_TRUE(logs.LogBest(state, record).ok());
    state.best_epoch = 4;
    state.best_valid = 0.75;
    state.test_at_best = 0.5;
    state.train_at_best = 0.875;
    ASSERT_TRUE(logs.LogBest(state, record).ok());
  });
  EXPECT_EQ(GetCapturedStdout(), "best epoch 4  valid 0.7500  test 0.5000\n");
  const auto lines = Lines(options_.metrics_json);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["epoch"], 9);
  EXPECT_EQ(lines[0]["best_epoch"], 4);
  EXPECT_EQ(lines[0]["train"], 0.875);
  EXPECT_EQ(lines[0]["valid"], 0.75);
  EXPECT_EQ(lines[0]["test"], 0.5);
  EXPECT_EQ(lines[0]["eval_seconds"], 2.0);
}

TEST_F(RunLogsTest, AResumedRunKeepsItsLines) {
  options_.metrics_json = (folder_ / "metrics").string();
  for (const bool resumed : {false, true, false}) {
    std::ofstream(options_.metrics_json, std::ios::app) << "{}\n";
    RunRanks(1, [&](Collectives& collectives) {
      RunLogs logs(options_, collectives);
      RunState state;
      ASSERT_TRUE(logs.Open(resumed, state).ok());
    });
    EXPECT_EQ(Lines(options_.metrics_json).size(), resumed ? 1u : 0u);
  }
}

// The attempts in a log, "N START" each.
std::vector<std::string> AttemptsIn(const std::vector<nlohmann::json>& lines) {
  std::vector<std::string> attempts;
  for (const nlohmann::json& line : lines) {
    attempts.push_back(std::to_string(line["attempt"].get<int>()) + " " +
                       line["checkpoint"].get<std::string>());
  }
  return attempts;
}

// Each host has a file of its own, with other attempts in it.
TEST_F(RunLogsTest, AnAttemptHasANumberThatNoHostKnows) {
  options_.resume = true;
  std::ofstream(folder_ / "0") << AttemptLine({2, "0:0"}) << "\n";
  std::ofstream(folder_ / "1") << AttemptLine({5, "0:0"}) << "\n";
  RunRanks(2, [&](Collectives& collectives) {
    TrainOptions options = options_;
    options.consumed_log =
        (folder_ / std::to_string(collectives.rank())).string();
    RunLogs logs(options, collectives);
    RunState state;
    state.attempt = 4;
    state.started_from = "1:2";
    ASSERT_TRUE(logs.Open(/*resumed=*/true, state).ok());
    EXPECT_EQ(state.attempt, 6);
    ASSERT_TRUE(logs.SyncConsumed().ok());
    ASSERT_TRUE(logs.SyncOtherHosts().ok());
  });
  EXPECT_THAT(AttemptsIn(Lines(folder_ / "0")), ElementsAre("2 0:0", "6 1:2"));
  EXPECT_THAT(AttemptsIn(Lines(folder_ / "1")), ElementsAre("5 0:0", "6 1:2"));
}

TEST_F(RunLogsTest, RanksOfOneHostBeginTheirFileOnce) {
  options_.consumed_log = (folder_ / "log").string();
  RunRanks(3, [&](Collectives& collectives) {
    RunLogs logs(options_, collectives);
    RunState state;
    state.attempt = 4;  // more than any in the file
    ASSERT_TRUE(logs.Open(/*resumed=*/false, state).ok());
    EXPECT_EQ(state.attempt, 4);
  });
  EXPECT_THAT(AttemptsIn(Lines(options_.consumed_log)), ElementsAre("4 0:0"));
}

TEST_F(RunLogsTest, ABatchOfEdgesHasBothEnds) {
  TrainOptions options = SmallRun();
  options.epochs = 1;
  options.consumed_log = (folder_ / "log").string();
  options.job.seed_kind = SeedKind::kEdge;
  options.job.shuffle = false;
  options.job.negatives = {NegativeMode::kBinary, 1};
  options.task.kind = TaskKind::kLink;
  options.task.metric = MetricKind::kRocAuc;
  options.task.negatives = NegativeMode::kBinary;
  options.model.decoder = DecoderKind::kDot;
  options.seeds.emplace().ids = {9, 4};
  options.seeds->dst = {7, 5};
  const auto source = Serve(ClassGraph(100, 20), "run_logs_edges");
  TrainRanks(1, source, options);
  auto lines = Lines(options.consumed_log);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["seeds"], (std::vector<int64_t>{9, 4}));
  EXPECT_EQ(lines[1]["dst"], (std::vector<int64_t>{7, 5}));
  // Nodes have one.
  TrainOptions nodes = SmallRun();
  nodes.epochs = 1;
  nodes.consumed_log = options.consumed_log;
  TrainRanks(1, source, nodes);
  lines = Lines(options.consumed_log);
  EXPECT_FALSE(lines.at(1).contains("dst"));
}

}  // namespace
}  // namespace millrace::testing
