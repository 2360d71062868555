// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

RunState SomeState() {
  RunState state;
  state.epoch = 1;
  state.next_batch = 2;
  state.step = 3;
  state.sums = {.loss = 0.25, .labelled = 5, .correct = 4};
  state.attempt = 6;
  state.world = 7;
  state.optimizer_steps = 8;
  state.best_valid = 0.5;
  state.best_epoch = 9;
  state.since_best = 10;
  return state;
}

// Checkpoints of earlier versions have these names, and so must later ones.
TEST(RunStateTest, WritesEveryField) {
  Checkpoint checkpoint;
  SomeState().SaveTo(checkpoint);
  const std::map<std::string, int64_t> counters = {
      {"epoch", 1},      {"next_batch", 2},      {"step", 3},
      {"correct", 4},    {"labelled", 5},        {"attempt", 6},
      {"world", 7},      {"optimizer_steps", 8}, {"best_epoch", 9},
      {"since_best", 10}};
  EXPECT_EQ(checkpoint.counters, counters);
  const std::map<std::string, double> values = {{"loss_sum", 0.25},
                                                {"best_valid", 0.5}};
  EXPECT_EQ(checkpoint.values, values);
}

TEST(RunStateTest, RestoresWhatItSaved) {
  RunState state = SomeState();
  state.train_at_best = 0.75;
  state.test_at_best = 0.125;
  Checkpoint checkpoint;
  state.SaveTo(checkpoint);
  const absl::StatusOr<RunState> restored = RunState::From(checkpoint);
  ASSERT_TRUE(restored.ok()) << restored.status();
  Checkpoint again;
  restored->SaveTo(again);
  EXPECT_EQ(again.counters, checkpoint.counters);
  EXPECT_EQ(again.values, checkpoint.values);
  EXPECT_EQ(again.values.size(), 4u);
}

TEST(RunStateTest, NamesTheFieldThatIsMissing) {
  Checkpoint whole;
  SomeState().SaveTo(whole);
  for (const auto& [name, count] : whole.counters) {
    Checkpoint checkpoint = whole;
    checkpoint.counters.erase(name);
    const absl::Status status = RunState::From(checkpoint).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << name;
    EXPECT_EQ(status.message(), "it lacks \"" + name + "\"");
  }
  whole.values.erase("loss_sum");
  EXPECT_EQ(RunState::From(whole).status().message(), "it lacks \"loss_sum\"");
}

TEST(RunStateTest, RefusesCountersOutOfRange) {
  for (const int64_t epoch : {int64_t{-1}, int64_t{1} << 32}) {
    Checkpoint checkpoint;
    SomeState().SaveTo(checkpoint);
    checkpoint.counters["epoch"] = epoch;
    const absl::Status status = RunState::From(checkpoint).status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"epoch\""));
  }
}

TEST(RunStateTest, AnAttemptResumesAtItsBatch) {
  RunState state = SomeState();
  state.BeginAttempt();
  EXPECT_EQ(state.attempt, 7);
  EXPECT_EQ(state.started_from, "1:2");
}

TEST(RunStateTest, KeepsTheBestEvaluation) {
  const Task accuracy;
  RunState state;
  EXPECT_TRUE(state.NoteEvaluation(0, {0.1, 0.5, 0.2}, accuracy));
  EXPECT_FALSE(state.NoteEvaluation(1, {0.3, 0.5, 0.4}, accuracy));
  EXPECT_EQ(state.since_best, 1u);
  EXPECT_EQ(state.best_epoch, 0u);
  EXPECT_EQ(state.test_at_best, 0.2);
  EXPECT_TRUE(state.NoteEvaluation(2, {0.3, 0.6, 0.4}, accuracy));
  EXPECT_EQ(state.since_best, 0u);
  EXPECT_EQ(state.best_epoch, 2u);
  EXPECT_EQ(state.best_valid, 0.6);
  EXPECT_EQ(state.train_at_best, 0.3);
  Task error;
  error.metric = MetricKind::kRmse;
  EXPECT_TRUE(state.NoteEvaluation(3, {{}, 0.5, {}}, error));
}

TEST(RunStateTest, TheLatestEvaluationIsBestWithoutValid) {
  RunState state;
  EXPECT_TRUE(state.NoteEvaluation(0, {0.9, {}, 0.9}, Task()));
  EXPECT_TRUE(state.NoteEvaluation(1, {0.1, {}, 0.1}, Task()));
  EXPECT_EQ(state.best_epoch, 1u);
  EXPECT_EQ(state.best_valid, std::nullopt);
}

}  // namespace
}  // namespace millrace::testing
