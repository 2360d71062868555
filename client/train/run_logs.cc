// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_logs.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/digest.h"

namespace millrace {

std::optional<double> MeanLoss(const StepSums& sums) {
  if (sums.labelled == 0) return std::nullopt;
  return sums.loss / static_cast<double>(sums.labelled);
}

absl::Status RunLogs::Open(bool resumed, RunState& state) {
  if (leader() && !options_.metrics_json.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(metrics_,
                              LineFile::Open(options_.metrics_json, resumed));
    MILLRACE_RETURN_IF_ERROR(metrics_->Begin());
  }
  return options_.consumed_log.empty() ? absl::OkStatus() : OpenConsumed(state);
}

// Gives the attempt a number that no other has, in the files of all hosts,
// even if that other one ended before its first checkpoint.
absl::Status RunLogs::OpenConsumed(RunState& state) {
  const std::string& path = options_.consumed_log;
  MILLRACE_ASSIGN_OR_RETURN(consumed_, LineFile::Open(path, options_.resume));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> files,
      GatherNumbers(static_cast<int64_t>(consumed_->identity())));
  const auto own = files.begin() + collectives_.rank();
  owns_consumed_ = std::find(files.begin(), own, *own) == own;
  several_consumed_ =
      std::count(files.begin(), files.end(), files[0]) < collectives_.world();
  if (owns_consumed_) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Begin());
  }
  int64_t last = -1;
  if (options_.resume) {
    MILLRACE_ASSIGN_OR_RETURN(last, LastAttempt(path));
  }
  // No rank may write until all ranks have got here, and so have begun their
  // files.
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> lasts,
                            GatherNumbers(last));
  state.attempt = std::max(state.attempt,
                           *std::max_element(lasts.begin(), lasts.end()) + 1);
  // Starting an attempt voids earlier lines; an evaluation-only run must not.
  if (owns_consumed_ && options_.epochs > 0) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Write(AttemptLine(
        {.attempt = state.attempt, .checkpoint = state.started_from})));
  }
  // Puts this line before any line of a batch.
  return collectives_.Barrier();
}

absl::StatusOr<std::vector<int64_t>> RunLogs::GatherNumbers(int64_t number) {
  return CatchTorch(
      "comparing numbers of ranks",
      [&]() -> absl::StatusOr<std::vector<int64_t>> {
        MILLRACE_ASSIGN_OR_RETURN(
            const at::Tensor all,
            collectives_.GatherRows(at::full({}, number, at::kLong)));
        const int64_t* numbers = all.const_data_ptr<int64_t>();
        return std::vector<int64_t>(numbers, numbers + all.numel());
      });
}

absl::Status RunLogs::LogConsumed(const Batch& batch, const Schema& schema,
                                  const RunState& state) {
  if (!consumed_.has_value()) return absl::OkStatus();
  const auto seeds = batch.seed.As<int64_t>();
  std::vector<int64_t> dst;
  if (batch.seed_kind == SeedKind::kEdge) {
    const auto ids = batch.edge_seeds.dst.As<int64_t>();
    dst.assign(ids.begin(), ids.end());
  }
  return consumed_->Write(
      ConsumedLine({.attempt = state.attempt,
                    .checkpoint = state.started_from,
                    .epoch = batch.epoch,
                    .batch = batch.index,
                    .rank = collectives_.rank(),
                    .seeds = {seeds.begin(), seeds.end()},
                    .dst = std::move(dst),
                    .digest = Hex(DigestBatch(batch, schema))}));
}

void RunLogs::BeginEpoch(const RunState& state, uint32_t steps) {
  if (!leader()) return;
  progress_ = std::make_unique<Progress>(StrCat("epoch ", state.epoch),
                                         state.step + steps, "steps");
  progress_->StartAt(state.step);
}

absl::Status RunLogs::LogStep(const RunState& state, const StepSums& sums) {
  const std::optional<double> loss = MeanLoss(sums);
  if (progress_ != nullptr) {
    if (loss.has_value()) {
      progress_->SetNote(absl::StrFormat("loss %.4f", *loss));
    }
    progress_->Add(1);
  }
  if (options_.log_every == 0 || state.step % options_.log_every != 0) {
    return absl::OkStatus();
  }
  MetricsRecord record;
  record.epoch = state.epoch;
  record.step = state.step;
  record.loss = loss;
  history_.push_back(record);
  return metrics_.has_value() ? metrics_->Write(MetricsLine(record))
                              : absl::OkStatus();
}

absl::Status RunLogs::LogEpoch(const MetricsRecord& record) {
  history_.push_back(record);
  return leader() ? Print(EpochLine(record), record) : absl::OkStatus();
}

absl::Status RunLogs::LogBest(const RunState& state, MetricsRecord record) {
  if (!leader() || !state.best_valid.has_value()) return absl::OkStatus();
  record.metrics = {state.train_at_best, state.best_valid, state.test_at_best};
  record.best_epoch = state.best_epoch;
  std::string line = absl::StrFormat("best epoch %u  valid %.4f",
                                     state.best_epoch, *state.best_valid);
  if (state.test_at_best.has_value()) {
    absl::StrAppendFormat(&line, "  test %.4f", *state.test_at_best);
  }
  return Print(line, record);
}

absl::Status RunLogs::Print(const std::string& line,
                            const MetricsRecord& record) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  return metrics_.has_value() ? metrics_->Write(MetricsLine(record))
                              : absl::OkStatus();
}

absl::Status RunLogs::SyncConsumed() const {
  return consumed_.has_value() ? consumed_->Sync() : absl::OkStatus();
}

// Rank 0's host syncs its file on the thread that writes checkpoints. The other
// hosts' files must be on disk before that thread gets a checkpoint.
absl::Status RunLogs::SyncOtherHosts() {
  if (!several_consumed_) return absl::OkStatus();
  if (owns_consumed_ && !leader()) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Sync());
  }
  return collectives_.Barrier();
}

}  // namespace millrace
