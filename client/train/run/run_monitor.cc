// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_monitor.h"

#include <utility>

#include "absl/time/clock.h"

namespace millrace {
namespace {

// Adds the times of training; an epoch has no others.
void AddTraining(const RunSeconds& epoch, RunSeconds& all) {
  all.wait += epoch.wait;
  all.copy += epoch.copy;
  all.compute += epoch.compute;
}

}  // namespace

std::string_view RunPhaseName(RunPhase phase) {
  switch (phase) {
    case RunPhase::kStarting:
      return "starting";
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kEvaluating:
      return "evaluating";
    case RunPhase::kEnded:
      return "ended";
  }
  return "";
}

void RunMonitor::SetInfo(RunInfo info) {
  MutexLock lock(&mutex_);
  now_.info = std::move(info);
}

void RunMonitor::Begin(const SplitMetrics& best,
                       std::optional<uint32_t> best_epoch) {
  MutexLock lock(&mutex_);
  now_.phase = RunPhase::kTraining;
  begun_ = SteadyNow();
  now_.best = best;
  now_.best_epoch = best_epoch;
}

void RunMonitor::NoteStep(const StepReport& report) {
  const absl::Time time = absl::Now();
  MutexLock lock(&mutex_);
  now_.phase = RunPhase::kTraining;
  now_.epoch = report.epoch;
  now_.step = report.step;
  now_.epoch_steps = report.epoch_steps;
  ++now_.steps;
  if (report.has_batch) ++now_.batches;
  now_.seeds += static_cast<uint64_t>(report.seeds);
  now_.batches_waiting = report.batches_waiting;
  now_.last_step = time;
  epoch_seconds_ = report.epoch_seconds;
  if (!report.loss.has_value()) return;
  now_.loss = report.loss;
  losses_.Add({static_cast<double>(now_.steps), *report.loss});
}

void RunMonitor::EndEpoch(const RunSeconds& seconds) {
  MutexLock lock(&mutex_);
  AddTraining(seconds, now_.seconds);
  epoch_seconds_ = {};
}

void RunMonitor::BeginEvaluation() {
  MutexLock lock(&mutex_);
  now_.phase = RunPhase::kEvaluating;
}

void RunMonitor::EndEvaluation(uint32_t epoch, const SplitMetrics& metrics,
                               bool best, double seconds) {
  const auto x = static_cast<double>(epoch);
  MutexLock lock(&mutex_);
  now_.phase = RunPhase::kTraining;
  now_.seconds.evaluate += seconds;
  now_.metrics = metrics;
  if (metrics.valid.has_value()) valid_.Add({x, *metrics.valid});
  if (metrics.test.has_value()) test_.Add({x, *metrics.test});
  if (!best) return;
  now_.best = metrics;
  now_.best_epoch = epoch;
}

void RunMonitor::NoteSnapshot(double seconds) {
  MutexLock lock(&mutex_);
  now_.seconds.checkpoint += seconds;
}

void RunMonitor::NoteCheckpoint() {
  const absl::Time time = absl::Now();
  MutexLock lock(&mutex_);
  now_.last_checkpoint = time;
}

void RunMonitor::End() {
  MutexLock lock(&mutex_);
  now_.phase = RunPhase::kEnded;
  now_.elapsed = SteadyNow() - begun_;
}

RunSnapshot RunMonitor::snapshot() const {
  MutexLock lock(&mutex_);
  RunSnapshot copy = now_;
  AddTraining(epoch_seconds_, copy.seconds);
  const bool running =
      now_.phase == RunPhase::kTraining || now_.phase == RunPhase::kEvaluating;
  if (running) copy.elapsed = SteadyNow() - begun_;
  copy.losses = losses_.points();
  copy.valid = valid_.points();
  copy.test = test_.points();
  return copy;
}

}  // namespace millrace
