// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/train/group/collectives.h"
#include "client/train/run/run_log.h"
#include "client/train/run/train_options.h"
#include "client/train/run_state.h"
#include "common/base/progress.h"
#include "common/graph/schema.h"
#include "common/sample/batch.h"

namespace millrace {

// What a run says: results on stdout and progress on stderr, by rank 0;
// --metrics-json, by rank 0; and --consumed-log, by all ranks. Files that were
// not asked for are not written.
// Threads: one at a time, but for SyncConsumed().
class RunLogs {
 public:
  // Keeps references to both.
  RunLogs(const TrainOptions& options, Collectives& collectives)
      : options_(options), collectives_(collectives) {}

  // Opens the files for the attempt that starts in `state`, and gives it a
  // number that no attempt in them has. `resumed`: from a checkpoint. All ranks
  // call it. Errors of LineFile and Collectives.
  absl::Status Open(bool resumed, RunState& state);

  // Adds a batch that is about to be trained on to --consumed-log.
  absl::Status LogConsumed(const Batch& batch, const Schema& schema,
                           const RunState& state);
  // `steps` steps of the epoch that `state` is in are left.
  void BeginEpoch(const RunState& state, uint32_t steps);
  // A step that `state` counts already.
  absl::Status LogStep(const RunState& state, const StepSums& sums);
  // The epoch has no more steps.
  void EndSteps() { progress_.reset(); }
  // An epoch, or an evaluation alone.
  absl::Status LogEpoch(const MetricsRecord& record);
  // The best epoch of a run that has ended, if there is one; `record` has the
  // times of its last evaluation, where that was not an epoch's.
  absl::Status LogBest(const RunState& state, MetricsRecord record);

  // Brings to the disk what this host has written to --consumed-log. Any
  // thread.
  absl::Status SyncConsumed() const;
  // Brings to the disk what hosts other than rank 0's have written. All ranks
  // call it.
  absl::Status SyncOtherHosts();

  // The epochs and logged steps so far, in order.
  const std::vector<MetricsRecord>& history() const { return history_; }

 private:
  bool leader() const { return collectives_.rank() == 0; }
  absl::Status OpenConsumed(RunState& state);
  // Each rank's number. All ranks call it.
  absl::StatusOr<std::vector<int64_t>> GatherNumbers(int64_t number);
  // A line for people, and one of --metrics-json.
  absl::Status Print(const std::string& line, const MetricsRecord& record);

  const TrainOptions& options_;
  Collectives& collectives_;
  std::optional<LineFile> metrics_;  // rank 0
  std::optional<LineFile> consumed_;
  bool owns_consumed_ = false;  // the first rank that writes this file
  // Ranks write other files, on other hosts.
  bool several_consumed_ = false;
  std::unique_ptr<Progress> progress_;  // rank 0, during an epoch
  std::vector<MetricsRecord> history_;
};

// The mean over labelled values; none: nothing was labelled.
std::optional<double> MeanLoss(const StepSums& sums);

}  // namespace millrace
