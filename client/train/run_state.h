// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/train/eval/evaluator.h"
#include "client/train/run/checkpoint.h"
#include "client/train/task/task.h"
#include "client/train/train_step.h"

namespace millrace {

// The position of a run and its results so far: what a checkpoint holds besides
// tensors and the run's identity.
struct RunState {
  uint32_t epoch = 0;
  uint32_t next_batch = 0;
  uint32_t step = 0;            // steps of the epoch so far
  StepSums sums;                // over the epoch so far
  int64_t attempt = 0;          // number of this start of the run, from 0
  int64_t world = 0;            // ranks when the checkpoint was written
  int64_t optimizer_steps = 0;  // steps when the checkpoint was written
  std::optional<double> best_valid;
  std::optional<double> test_at_best;
  std::optional<double> train_at_best;
  uint32_t best_epoch = 0;
  uint32_t since_best = 0;  // evaluations since the best one

  // "EPOCH:BATCH" that this attempt started from. Not in a checkpoint.
  std::string started_from = "0:0";

  // Fills in the checkpoint's counters and values.
  void SaveTo(Checkpoint& checkpoint) const;
  // Returns the state that SaveTo() wrote. DATA_LOSS: a field is missing or out
  // of range (names it).
  static absl::StatusOr<RunState> From(const Checkpoint& checkpoint);

  // Turns this into the state of a new attempt that starts here.
  void BeginAttempt();
  // Moves to the start of the next epoch, but keeps `sums`.
  void EndEpoch();
  // Notes an evaluation, and returns whether its model is the best so far;
  // without metrics.valid, the latest is.
  bool NoteEvaluation(uint32_t epoch, const SplitMetrics& metrics,
                      const Task& task);
};

// Returns the epoch of a checkpoint. DATA_LOSS: it has none.
absl::StatusOr<int64_t> ReadEpoch(const Checkpoint& checkpoint);

}  // namespace millrace
