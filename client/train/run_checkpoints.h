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

// The checkpoints of a run: those that it may resume from, and those that it
// writes. Only rank 0 reads and writes files.
// Threads: one at a time; all ranks make the same calls.
class RunCheckpoints {
 public:
  // Whether this process will write checkpoints.
  static bool Writes(const TrainOptions& options,
                     const Collectives& collectives);

  // Locks the folder of checkpoints if the run trains and keeps any; `write`
  // writes them. Keeps references to `options` and `collectives`. Fails like
  // CheckpointWriter::Open and CheckWritableFolder, naming the field.
  static absl::StatusOr<std::unique_ptr<RunCheckpoints>> Open(
      const TrainOptions& options, Collectives& collectives,
      CheckpointWriter::Write write);

  // The file that the run starts from: last.pt, or best.pt if the run has no
  // epochs and keeps the best model.
  std::string path() const;
  // Returns the checkpoint in path() on every rank; nullopt if there is none
  // and the run can start at the beginning. NOT_FOUND: there is none, and the
  // run has no epochs. Fails like ReadFile and ParseCheckpoint.
  absl::StatusOr<std::optional<Checkpoint>> Read();
  // Whether best.pt is from a later epoch than last.pt, which is from `epoch`.
  // best.pt is written first, so a run that was killed in between has left a
  // model there that this run has not reached yet.
  absl::StatusOr<bool> BestIsAhead(uint32_t epoch);

  // See CheckpointWriter::Save. Only rank 0 calls it.
  void Save(std::shared_ptr<const Checkpoint> checkpoint, bool best) {
    writer_->Save(std::move(checkpoint), best);
  }
  // The first error of a write.
  absl::Status status() const;
  // Waits until everything is on disk; returns status().
  absl::Status Finish();

 private:
  RunCheckpoints(const TrainOptions& options, Collectives& collectives)
      : options_(options), collectives_(collectives) {}

  const TrainOptions& options_;
  Collectives& collectives_;
  std::unique_ptr<CheckpointWriter> writer_;  // rank 0 only, if the run trains
};

// Adds the path of a checkpoint to an error about what it holds.
absl::Status InCheckpoint(const std::string& path, const absl::Status& status);

}  // namespace millrace
