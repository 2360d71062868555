// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_checkpoints.h"

#include <utility>

#include "client/train/run/train_check.h"
#include "client/train/run_state.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr uint64_t kMaxCheckpointBytes = uint64_t{1} << 40;

// Returns no bytes if there is no file.
absl::StatusOr<std::string> ReadIfThere(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(path, kMaxCheckpointBytes);
  if (absl::IsNotFound(content.status())) return std::string();
  if (content.ok() && content->empty()) {
    return ParseCheckpoint("", path).status();
  }
  return content;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunCheckpoints>> RunCheckpoints::Open(
    const TrainOptions& options, Collectives& collectives,
    CheckpointWriter::Write write) {
  auto checkpoints =
      std::unique_ptr<RunCheckpoints>(new RunCheckpoints(options, collectives));
  if (!Writes(options, collectives)) return checkpoints;
  // Locks the folder before CheckWritableFolder() tries out a file in it.
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> writer =
      CheckpointWriter::Open(options.checkpoint, options.resume,
                             std::move(write));
  if (!writer.ok()) {
    return FieldStatus(writer.status().code(),
                       {.field = "checkpoint",
                        .limit = std::string(writer.status().message())},
                       Reason{ReasonOf(writer.status())});
  }
  checkpoints->writer_ = *std::move(writer);
  MILLRACE_RETURN_IF_ERROR(
      CheckWritableFolder("checkpoint", options.checkpoint));
  return checkpoints;
}

bool RunCheckpoints::Writes(const TrainOptions& options,
                            const Collectives& collectives) {
  // A run without epochs only reads a checkpoint.
  return collectives.rank() == 0 && !options.checkpoint.empty() &&
         options.epochs > 0;
}

std::string RunCheckpoints::path() const {
  const bool best = options_.epochs == 0 && options_.keep_best;
  return StrCat(options_.checkpoint, best ? "/best.pt" : "/last.pt");
}

absl::StatusOr<std::optional<Checkpoint>> RunCheckpoints::Read() {
  const bool leader = collectives_.rank() == 0;
  std::string bytes;
  if (leader) {
    MILLRACE_ASSIGN_OR_RETURN(bytes, ReadIfThere(path()));
  }
  MILLRACE_ASSIGN_OR_RETURN(bytes, collectives_.ShareBytes(std::move(bytes)));
  if (!bytes.empty()) return ParseCheckpoint(bytes, path());
  if (options_.epochs == 0) {
    return WithReason(absl::NotFoundError(StrCat("no checkpoint ", path())),
                      Reason{"no_checkpoint"});
  }
  // A supervisor adds `resume` to every attempt, also to the first.
  if (leader) {
    LogInfo("no checkpoint: training starts at the beginning",
            {{"folder", options_.checkpoint}});
  }
  return std::nullopt;
}

absl::StatusOr<bool> RunCheckpoints::BestIsAhead(uint32_t epoch) {
  const std::string file = StrCat(options_.checkpoint, "/best.pt");
  bool ahead = false;
  if (collectives_.rank() == 0 && options_.keep_best && options_.epochs > 0) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string bytes, ReadIfThere(file));
    if (!bytes.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(const Checkpoint best,
                                ParseCheckpoint(bytes, file));
      const absl::StatusOr<int64_t> best_epoch = ReadEpoch(best);
      MILLRACE_RETURN_IF_ERROR(InCheckpoint(file, best_epoch.status()));
      ahead = *best_epoch > epoch;
    }
  }
  return collectives_.ShareAnswer(ahead);
}

absl::Status RunCheckpoints::status() const {
  return writer_ != nullptr ? writer_->status() : absl::OkStatus();
}

absl::Status RunCheckpoints::Finish() {
  return writer_ != nullptr ? writer_->Finish() : absl::OkStatus();
}

absl::Status InCheckpoint(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return Reworded(
      status, StrCat("checkpoint ", path, ": ", std::string(status.message())));
}

}  // namespace millrace
