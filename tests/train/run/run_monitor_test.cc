// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/time/clock.h"

namespace millrace {
namespace {

using ::testing::FieldsAre;

StepReport Step(uint32_t step, std::optional<double> loss) {
  StepReport report;
  report.epoch = 2;
  report.step = step;
  report.epoch_steps = 9;
  report.loss = loss;
  report.has_batch = true;
  report.seeds = 32;
  report.batches_waiting = 3;
  return report;
}

TEST(RunMonitorTest, CountsStepsBatchesAndSeeds) {
  RunMonitor monitor;
  monitor.Begin({}, std::nullopt);
  const absl::Time before = absl::Now();
  monitor.NoteStep(Step(1, 0.5));
  StepReport without = Step(2, 0.25);
  without.has_batch = false;
  without.seeds = 0;
  monitor.NoteStep(without);
  const RunSnapshot run = monitor.snapshot();
  EXPECT_EQ(run.phase, RunPhase::kTraining);
  EXPECT_EQ(run.steps, 2u);
  EXPECT_EQ(run.batches, 1u);
  EXPECT_EQ(run.seeds, 32u);
  EXPECT_EQ(run.epoch, 2u);
  EXPECT_EQ(run.step, 2u);
  EXPECT_EQ(run.epoch_steps, 9u);
  EXPECT_EQ(run.batches_waiting, 3);
  EXPECT_EQ(run.loss, 0.25);
  ASSERT_TRUE(run.last_step.has_value());
  EXPECT_GE(*run.last_step, before);
  EXPECT_LE(*run.last_step, absl::Now());
  EXPECT_THAT(run.losses,
              ::testing::ElementsAre(FieldsAre(1, 0.5), FieldsAre(2, 0.25)));
}

TEST(RunMonitorTest, StepWithoutLabelsKeepsTheLastLoss) {
  RunMonitor monitor;
  monitor.NoteStep(Step(1, 0.5));
  monitor.NoteStep(Step(2, std::nullopt));
  EXPECT_EQ(monitor.snapshot().loss, 0.5);
  EXPECT_EQ(monitor.snapshot().losses.size(), 1u);
}

TEST(RunMonitorTest, AddsUpTimesOfEpochs) {
  RunMonitor monitor;
  StepReport step = Step(1, 0.5);
  step.epoch_seconds = {.wait = 1, .copy = 2, .compute = 4};
  monitor.NoteStep(step);
  EXPECT_EQ(monitor.snapshot().seconds.compute, 4);
  // The end of an epoch knows more than its last step.
  monitor.EndEpoch({.wait = 1, .copy = 2.5, .compute = 5});
  EXPECT_EQ(monitor.snapshot().seconds.compute, 5);
  step.epoch_seconds = {.wait = 0.5, .copy = 0.25, .compute = 0.125};
  monitor.NoteStep(step);
  monitor.EndEvaluation(2, {}, /*best=*/false, /*seconds=*/3);
  monitor.EndEvaluation(3, {}, /*best=*/false, /*seconds=*/4);
  monitor.NoteSnapshot(0.5);
  const RunSeconds seconds = monitor.snapshot().seconds;
  EXPECT_EQ(seconds.wait, 1.5);
  EXPECT_EQ(seconds.copy, 2.75);
  EXPECT_EQ(seconds.compute, 5.125);
  EXPECT_EQ(seconds.evaluate, 7);
  EXPECT_EQ(seconds.checkpoint, 0.5);
}

TEST(RunMonitorTest, KeepsTheLastAndTheBestEvaluation) {
  RunMonitor monitor;
  monitor.Begin({.train = std::nullopt, .valid = 0.6, .test = 0.5}, 4);
  EXPECT_EQ(monitor.snapshot().best_epoch, 4u);
  monitor.BeginEvaluation();
  EXPECT_EQ(monitor.snapshot().phase, RunPhase::kEvaluating);
  monitor.EndEvaluation(5, {.train = 0.9, .valid = 0.7, .test = 0.65}, true, 1);
  monitor.EndEvaluation(6, {.train = 0.9, .valid = 0.68, .test = {}}, false, 1);
  const RunSnapshot run = monitor.snapshot();
  EXPECT_EQ(run.phase, RunPhase::kTraining);
  EXPECT_EQ(run.metrics.valid, 0.68);
  EXPECT_EQ(run.best.valid, 0.7);
  EXPECT_EQ(run.best.test, 0.65);
  EXPECT_EQ(run.best_epoch, 5u);
  EXPECT_THAT(run.valid,
              ::testing::ElementsAre(FieldsAre(5, 0.7), FieldsAre(6, 0.68)));
  EXPECT_THAT(run.test, ::testing::ElementsAre(FieldsAre(5, 0.65)));
}

TEST(RunMonitorTest, KnowsNoCheckpointBeforeTheFirst) {
  RunMonitor monitor;
  EXPECT_FALSE(monitor.snapshot().last_checkpoint.has_value());
  const absl::Time before = absl::Now();
  monitor.NoteCheckpoint();
  EXPECT_GE(monitor.snapshot().last_checkpoint, before);
}

TEST(RunMonitorTest, TimeStopsWithTheRun) {
  RunMonitor monitor;
  EXPECT_EQ(monitor.snapshot().phase, RunPhase::kStarting);
  EXPECT_EQ(monitor.snapshot().elapsed, absl::ZeroDuration());
  monitor.Begin({}, std::nullopt);
  EXPECT_GE(monitor.snapshot().elapsed, absl::ZeroDuration());
  monitor.End();
  const RunSnapshot ended = monitor.snapshot();
  EXPECT_EQ(ended.phase, RunPhase::kEnded);
  EXPECT_LT(ended.elapsed, absl::Minutes(5));
  EXPECT_EQ(monitor.snapshot().elapsed, ended.elapsed);
}

}  // namespace
}  // namespace millrace
