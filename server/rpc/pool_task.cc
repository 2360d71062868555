// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/pool_task.h"

namespace millrace {
namespace {

absl::Status CancelledEarly() {
  return absl::CancelledError("the call was cancelled before its work began");
}

}  // namespace

// A task begins by taking the lock, so it cannot destroy this object before the
// lock is released here.
absl::Status PoolTask::Submit(ThreadPool& pool, std::function<void()> task) {
  auto start = [this, task = std::move(task)] {
    {
      MutexLock lock(&mutex_);
      queued_in_ = nullptr;
    }
    task();
  };
  MutexLock lock(&mutex_);
  if (cancelled_) return CancelledEarly();
  if (!pool.TrySubmit(std::move(start), client_, this)) {
    return absl::UnavailableError("the server is shutting down");
  }
  queued_in_ = &pool;
  return absl::OkStatus();
}

absl::Status PoolTask::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  if (queued_in_ == nullptr || !queued_in_->Remove(this)) {
    return absl::OkStatus();
  }
  queued_in_ = nullptr;
  return CancelledEarly();
}

}  // namespace millrace
