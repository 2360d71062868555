// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/fair_queue.h"
#include "common/base/minute_sum.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// A fixed number of threads that run tasks from a bounded queue, sharing their
// time fairly among clients (see FairQueue). Tasks must not throw.
// Threads: any thread may call any method.
// States: running -> closed (queued tasks still run, new ones are refused).
class ThreadPool {
 public:
  // `capacity` is the number of tasks that may wait, not counting those that
  // run. Throws std::system_error if the system cannot start more threads;
  // RunProgram() handles that as it does exhausted memory.
  ThreadPool(std::string name, int threads, size_t capacity);
  // Calls Close().
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs `task` on behalf of `client`. Returns false and drops the task if the
  // queue is full or closed. `owner`, if not null, names the task for Remove();
  // only one task of an owner may wait at a time.
  [[nodiscard]] bool TrySubmit(std::function<void()> task,
                               const std::string& client = "",
                               const void* owner = nullptr);

  // Drops the waiting task of `owner`. Returns false if there is none; it may
  // be running already.
  [[nodiscard]] bool Remove(const void* owner);

  // Refuses further tasks, runs those that are queued, and joins the threads.
  // Idempotent. Must not be called from a task of this pool.
  void Close();

  int threads() const { return static_cast<int>(threads_.size()); }

  // How busy the threads are. A thread is busy while it runs a task, even if
  // the task waits for something.
  struct Load {
    size_t waiting = 0;  // tasks, now
    size_t running = 0;
    double busy_seconds = 0;  // of all threads together, so far
    // Busy seconds per second and thread, 0 to 1, in the last minute; since the
    // start of the pool in the first one.
    double busy_ratio = 0;
  };
  Load load() const;

 private:
  void Work();
  // Updates busy_ after queue_.running() has changed.
  void NoteRunning(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar work_;  // a task is queued, or closed_
  FairQueue queue_ ABSL_GUARDED_BY(mutex_);
  // Busy seconds. Changes as it is read, because it keeps only a minute.
  mutable MinuteSum busy_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex join_mutex_;                  // held while Close() joins
  std::vector<std::thread> threads_;  // joined by the first Close()
};

}  // namespace millrace
