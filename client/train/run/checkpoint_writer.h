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

// Writes the checkpoints of a run to its folder, on a thread of its own:
// last.pt, and best.pt from the best evaluation. At most one waits while
// another is written; a newer one replaces it, so a slow disk costs checkpoints
// but neither time nor memory.
// Threads: one calls Save() and Finish().
class CheckpointWriter {
 public:
  using Write = std::function<absl::Status(const std::filesystem::path&,
                                           const Checkpoint&)>;

  // Makes the folder, locks it for this writer and removes the unfinished
  // file of a run that was killed. With `resume`, the folder may have
  // checkpoints, which are this run's. FAILED_PRECONDITION: another run has the
  // lock. INVALID_ARGUMENT: there are checkpoints, but `resume` is false. Also
  // the errors of FileError.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Open(
      const std::filesystem::path& folder, bool resume,
      Write write = WriteCheckpoint);
  // Waits as Finish() does.
  ~CheckpointWriter();

  // Hands over a snapshot, whose tensors must not change any more; does not
  // wait for the disk. With `best`, writes it to best.pt too, and does so
  // first, so that last.pt never mentions a best model that is not in best.pt.
  void Save(std::shared_ptr<const Checkpoint> snapshot, bool best);
  // The first error of a write; nothing is written after it.
  absl::Status status() const;
  // Waits until all that was handed over is written; returns status().
  absl::Status Finish();

 private:
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

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
