// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/thread_pool.h"

namespace millrace {

// The work of one call in thread pools: one task at a time, which a
// cancellation removes if it has not begun yet, so that a cancelled call does
// not wait for the task's turn.
// States: open -> cancelled.
// Threads: any. A task may destroy this object, even before the Submit() that
// started it has returned.
class PoolTask {
 public:
  // Tasks run on behalf of `client` (see ThreadPool).
  explicit PoolTask(std::string client) : client_(std::move(client)) {}
  PoolTask(const PoolTask&) = delete;
  PoolTask& operator=(const PoolTask&) = delete;

  // Runs `task` on `pool`, which must have room for it. No earlier task may be
  // waiting. On an error, `task` never runs.
  // CANCELLED: Cancel() was called. UNAVAILABLE: the pool is closed.
  absl::Status Submit(ThreadPool& pool, std::function<void()> task);

  // Refuses further tasks. Returns CANCELLED if that removed a task that was
  // waiting, so that the caller must end the call; OK if there was none, or it
  // has begun.
  [[nodiscard]] absl::Status Cancel();

 private:
  const std::string client_;

  Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // The pool in which the task waits; null if none waits.
  ThreadPool* queued_in_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace millrace
