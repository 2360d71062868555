// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/train/run/checkpoint.h"
#include "common/base/mutex.h"
#include "common/file/file.h"

namespace millrace {

// The checkpoints of a run, written to its folder by a thread of its own:
// last.pt, and best.pt of the best evaluation. One write is under way and one
// waits; a newer checkpoint takes the place of the one that waits, so a slow
// disk costs checkpoints and neither time nor memory.
// Threads: one calls Save() and Finish().
class CheckpointWriter {
 public:
  using Write = std::function<absl::Status(const std::filesystem::path&,
                                           const Checkpoint&)>;

  // Makes the folder, locks it for this writer and removes the unfinished
  // file of a run that was killed. `resume`: checkpoints that are there are of
  // this run, which goes on. FAILED_PRECONDITION: another run has the lock.
  // INVALID_ARGUMENT: there are checkpoints of another run. Errors of
  // FileError.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Open(
      const std::filesystem::path& folder, bool resume,
      Write write = WriteCheckpoint);
  // As Finish().
  ~CheckpointWriter();

  // Hands over a snapshot, whose tensors nobody changes from now on; does not
  // wait for the disk. `best`: best.pt is to hold it too. It is written first,
  // so that last.pt never speaks of a best.pt that is not there.
  void Save(std::shared_ptr<const Checkpoint> snapshot, bool best);
  // The first error of a write; nothing is written after it.
  absl::Status status() const;
  // Waits until all that was handed over is written; returns status().
  absl::Status Finish();

 private:
  // What waits to be written.
  struct Waiting {
    std::shared_ptr<const Checkpoint> best, last;
  };

  CheckpointWriter(std::filesystem::path folder, UniqueFd lock, Write write);
  void Run();
  absl::Status WriteBoth(const Waiting& files) const;

  const std::filesystem::path folder_;
  const UniqueFd lock_;
  const Write write_;

  mutable Mutex mutex_;
  CondVar changed_;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace millrace
