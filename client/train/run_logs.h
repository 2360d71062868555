// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/train/group/collectives.h"
#include "client/train/run/log_lines.h"
#include "client/train/run/train_options.h"
#include "client/train/run_state.h"
#include "common/base/progress.h"
#include "common/graph/schema.h"
#include "common/sample/batch.h"

namespace millrace {

// The output of a run: results on stdout, progress on stderr and
// --metrics-json, all by rank 0; and --consumed-log, by all ranks. Files that
// were not asked for are not written.
// Threads: one at a time, except for SyncConsumed().
class RunLogs {
 public:
  // Keeps references to both.
  RunLogs(const TrainOptions& options, Collectives& collectives)
      : options_(options), collectives_(collectives) {}

  // Opens the files for the attempt that starts in `state`, and sets its number
  // to one that no attempt in them has. `resumed` says whether the attempt
  // starts from a checkpoint. All ranks call it. Fails like LineFile and
  // Collectives.
  absl::Status Open(bool resumed, RunState& state);

  // Adds a batch that is about to be trained on to --consumed-log.
  absl::Status LogConsumed(const Batch& batch, const Schema& schema,
                           const RunState& state);
  // Starts to show the progress of state's epoch, of which `steps` are left.
  void BeginEpoch(const RunState& state, uint32_t steps);
  // Logs a step, which `state` already counts.
  absl::Status LogStep(const RunState& state, const StepSums& sums);
  void EndSteps() { progress_.reset(); }
  // Logs an epoch, or an evaluation without one.
  absl::Status LogEpoch(const MetricsRecord& record);
  // Logs the best epoch of a run that has ended, if there is one. `record` has
  // the times of the run's last evaluation if that was without an epoch.
  absl::Status LogBest(const RunState& state, MetricsRecord record);

  // Syncs what this host has written to --consumed-log to disk. Any thread.
  absl::Status SyncConsumed() const;
  // Does the same on the hosts other than rank 0's. All ranks call it.
  absl::Status SyncOtherHosts();

  // The epochs and logged steps so far, in order.
  const std::vector<MetricsRecord>& history() const { return history_; }

 private:
  bool leader() const { return collectives_.rank() == 0; }
  absl::Status OpenConsumed(RunState& state);
  // Returns each rank's number. All ranks call it.
  absl::StatusOr<std::vector<int64_t>> GatherNumbers(int64_t number);
  absl::Status Print(const std::string& line, const MetricsRecord& record);

  const TrainOptions& options_;
  Collectives& collectives_;
  std::optional<LineFile> metrics_;  // rank 0 only
  std::optional<LineFile> consumed_;
  bool owns_consumed_ = false;  // is the first rank that writes this file
  // Not all ranks write the same file.
  bool several_consumed_ = false;
  std::unique_ptr<Progress> progress_;  // rank 0 only, during an epoch
  std::vector<MetricsRecord> history_;
};

// Returns the mean over labelled values; nullopt if nothing was labelled.
std::optional<double> MeanLoss(const StepSums& sums);

}  // namespace millrace
