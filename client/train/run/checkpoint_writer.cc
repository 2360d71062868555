// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/checkpoint_writer.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr char kLast[] = "last.pt";
constexpr char kBest[] = "best.pt";

// Keeps two runs from writing to the same temporary file. The system releases
// the lock when the process ends, however it ends.
absl::StatusOr<UniqueFd> Lock(const std::filesystem::path& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return FileError("open", folder, errno);
  // Does without a lock if the (network) file system cannot lock folders.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        StrCat("another run writes its checkpoints to ", folder.string(),
               "\nwait until it has ended, or name another folder"));
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Open(
    const std::filesystem::path& folder, bool resume, Write write) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError("create", folder, error.value());
  MILLRACE_ASSIGN_OR_RETURN(UniqueFd lock, Lock(folder));
  for (const char* name : {kLast, kBest}) {
    if (!resume && std::filesystem::exists(folder / name, error)) {
      return WithReason(
          absl::InvalidArgumentError(
              StrCat((folder / name).string(), " is from an earlier run")),
          Reason{"earlier_checkpoint"});
    }
    std::filesystem::remove(TemporaryOf(folder / name), error);
  }
  return std::unique_ptr<CheckpointWriter>(
      new CheckpointWriter(folder, std::move(lock), std::move(write)));
}

CheckpointWriter::CheckpointWriter(std::filesystem::path folder, UniqueFd lock,
                                   Write write)
    : folder_(std::move(folder)),
      lock_(std::move(lock)),
      write_(std::move(write)),
      thread_([this] { Run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  {
    MutexLock lock(&mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void CheckpointWriter::Save(std::shared_ptr<const Checkpoint> snapshot,
                            bool best) {
  MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  // A waiting best.pt is still wanted if a newer last.pt replaces its last.pt.
  if (best) waiting_.best = snapshot;
  waiting_.last = std::move(snapshot);
  changed_.NotifyAll();
}

absl::Status CheckpointWriter::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

absl::Status CheckpointWriter::Finish() {
  MutexLock lock(&mutex_);
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !writing_ && waiting_.last == nullptr;
  });
  return status_;
}

absl::Status CheckpointWriter::WriteBoth(const Waiting& files) const {
  if (files.best != nullptr) {
    MILLRACE_RETURN_IF_ERROR(write_(folder_ / kBest, *files.best));
  }
  return write_(folder_ / kLast, *files.last);
}

void CheckpointWriter::Run() {
  while (true) {
    Waiting files;
    {
      MutexLock lock(&mutex_);
      changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closing_ || waiting_.last != nullptr;
      });
      if (waiting_.last == nullptr) return;
      files = std::exchange(waiting_, {});
      writing_ = true;
    }
    const absl::Status written = WriteBoth(files);
    files = {};  // frees its memory before the next one is made
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!written.ok()) {
      status_ = written;
      waiting_ = {};
    }
    changed_.NotifyAll();
  }
}

}  // namespace millrace
