// SPDX-License-Identifier: Apache-2.0
// What a run shows to those who watch it while it trains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "client/train/eval/evaluator.h"
#include "client/train/run/curve.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// What a run is. Does not change once it trains.
struct RunInfo {
  int rank = 0;
  int world = 1;
  std::string device;  // "cpu" or "cuda"
  std::string model;   // a word of --model
  std::string task;    // a word of --task
  std::string metric;  // a word of --metric
  std::string seeds;   // the seeds' node type or relation
  uint32_t epochs = 0;
  bool higher_is_better = true;  // of the metric
  bool checkpoints = false;      // whether this process writes checkpoints
};

// Where the time of a run goes on this rank, in seconds. On a device, copies
// run beside steps, so the sum may exceed the time that has passed.
struct RunSeconds {
  double wait = 0;     // for batches
  double copy = 0;     // to the device or, on the CPU, making minibatches
  double compute = 0;  // steps
  double evaluate = 0;
  double checkpoint = 0;  // handing them to their writer
};

enum class RunPhase { kStarting, kTraining, kEvaluating, kEnded };
// "starting", "training", "evaluating", "ended".
std::string_view RunPhaseName(RunPhase phase);

// One step of this rank.
struct StepReport {
  uint32_t epoch = 0;
  uint32_t step = 0;           // in the epoch, from 1
  uint32_t epoch_steps = 0;    // of the whole epoch
  std::optional<double> loss;  // mean over labelled values of all ranks
  bool has_batch = false;      // whether this rank had one
  int64_t seeds = 0;           // of this rank's batch
  int batches_waiting = 0;     // that have arrived, after this one
  RunSeconds epoch_seconds;    // of training in this epoch so far
};

// Everything that a RunMonitor knows at one moment. Counts are of this process,
// so they start at 0 if a run is resumed.
struct RunSnapshot {
  RunInfo info;
  RunPhase phase = RunPhase::kStarting;
  absl::Duration elapsed;  // since Begin(), until End()
  uint32_t epoch = 0;
  uint32_t step = 0;         // steps of the epoch that are done
  uint32_t epoch_steps = 0;  // of the whole epoch; 0 before the first step
  uint64_t steps = 0;
  uint64_t batches = 0;  // of this rank
  uint64_t seeds = 0;    // of these batches
  int batches_waiting = 0;
  std::optional<double> loss;  // of the last step that had labels
  RunSeconds seconds;
  SplitMetrics metrics;  // of the last evaluation
  SplitMetrics best;     // of the best one
  std::optional<uint32_t> best_epoch;
  std::optional<absl::Time> last_step;
  std::optional<absl::Time> last_checkpoint;  // written by this process
  std::vector<Curve::Point> losses;           // x counts steps of this process
  std::vector<Curve::Point> valid, test;      // x is the epoch
};

// Collects what a trainer reports, for pages that others read at any time.
// A report takes about a microsecond and never waits for a reader for longer.
// Threads: any.
class RunMonitor {
 public:
  void SetInfo(RunInfo info);
  // The run begins with `best` of a checkpoint, if it has any.
  void Begin(const SplitMetrics& best, std::optional<uint32_t> best_epoch);
  void NoteStep(const StepReport& report);
  // The epoch's steps are over and have taken `seconds`.
  void EndEpoch(const RunSeconds& seconds);
  void BeginEvaluation();
  // `best`: whether no earlier one of the run was better.
  void EndEvaluation(uint32_t epoch, const SplitMetrics& metrics, bool best,
                     double seconds);
  // Making a snapshot of the model for a checkpoint has taken `seconds`.
  void NoteSnapshot(double seconds);
  // A checkpoint is on disk.
  void NoteCheckpoint();
  void End();

  RunSnapshot snapshot() const;

 private:
  mutable Mutex mutex_;
  SteadyTime begun_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfiniteFuture();
  // Here the curves are empty, `seconds` has only complete epochs, and
  // `elapsed` is set only by End().
  RunSnapshot now_ ABSL_GUARDED_BY(mutex_);
  RunSeconds epoch_seconds_ ABSL_GUARDED_BY(mutex_);
  Curve losses_ ABSL_GUARDED_BY(mutex_);
  Curve valid_ ABSL_GUARDED_BY(mutex_);
  Curve test_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
