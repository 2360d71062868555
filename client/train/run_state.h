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

// Where a run is and what it has seen: what a checkpoint holds besides tensors
// and the run's identity.
struct RunState {
  uint32_t epoch = 0;
  uint32_t next_batch = 0;
  uint32_t step = 0;            // of the epoch
  StepSums sums;                // of the epoch
  int64_t attempt = 0;          // starts of this run so far, from 0
  int64_t world = 0;            // ranks, when the checkpoint was written
  int64_t optimizer_steps = 0;  // as `world`
  std::optional<double> best_valid;
  std::optional<double> test_at_best;
  std::optional<double> train_at_best;
  uint32_t best_epoch = 0;
  uint32_t since_best = 0;  // evaluations

  // Not in a checkpoint: "EPOCH:BATCH" that this attempt started from.
  std::string started_from = "0:0";

  // Fills in the checkpoint's counters and values.
  void SaveTo(Checkpoint& checkpoint) const;
  // The state that SaveTo() wrote. DATA_LOSS: a counter is missing or out of
  // range (names it).
  static absl::StatusOr<RunState> From(const Checkpoint& checkpoint);

  // The state of the next attempt, which starts from here.
  void BeginAttempt();
  // From here on a checkpoint starts the next epoch; `sums` stay.
  void EndEpoch();
  // Whether the model that was evaluated is the best one so far; without a
  // metric of valid the latest is.
  bool NoteEvaluation(uint32_t epoch, const Accuracy& accuracy,
                      const Task& task);
};

// The epoch of a checkpoint whose other fields are not of interest. DATA_LOSS:
// it has none.
absl::StatusOr<int64_t> EpochOf(const Checkpoint& checkpoint);

}  // namespace millrace
