// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/train/group/collectives.h"
#include "client/train/run/checkpoint.h"
#include "client/train/run/checkpoint_writer.h"
#include "client/train/run/train_options.h"

namespace millrace {

// The checkpoints of a run: those that it may go on from, and those that it
// writes. Rank 0 alone reads and writes files.
// Threads: one at a time; all ranks make the same calls.
class RunCheckpoints {
 public:
  // Where the run trains and keeps checkpoints: locks its folder, for `write`.
  // Keeps references to both. Errors of CheckpointWriter::Open and
  // CheckWritableFolder, naming the option.
  static absl::StatusOr<std::unique_ptr<RunCheckpoints>> Open(
      const TrainOptions& options, Collectives& collectives,
      CheckpointWriter::Write write);

  // The file that a run starts from: of a run without epochs that keeps the
  // best model, that one.
  std::string path() const;
  // The checkpoint in path(), on every rank; none if it is not there, and the
  // run may start at the beginning. NOT_FOUND: there is none to evaluate.
  // Errors of ReadFile and ParseCheckpoint.
  absl::StatusOr<std::optional<Checkpoint>> Read();
  // Whether the best model is of a later epoch than `epoch`, which last.pt is
  // of: best.pt is written first, so that a run that was killed in between has
  // a model in it that this one has not come to yet.
  absl::StatusOr<bool> BestIsAhead(uint32_t epoch);

  // CheckpointWriter::Save; rank 0 alone calls it.
  void Save(std::shared_ptr<const Checkpoint> checkpoint, bool best) {
    writer_->Save(std::move(checkpoint), best);
  }
  // The first error of a write.
  absl::Status status() const;
  // Waits for the disk; returns status().
  absl::Status Finish();

 private:
  RunCheckpoints(const TrainOptions& options, Collectives& collectives)
      : options_(options), collectives_(collectives) {}

  const TrainOptions& options_;
  Collectives& collectives_;
  std::unique_ptr<CheckpointWriter> writer_;  // rank 0, if it trains
};

// Adds the path of a checkpoint to an error about what it holds.
absl::Status InCheckpoint(const std::string& path, const absl::Status& status);

}  // namespace millrace
