// SPDX-License-Identifier: Apache-2.0
// Mutex and condition variable of the standard library, with the annotations of
// Clang's thread-safety analysis. Abseil's are not used: their timed waits end
// at a time of day, so that setting the clock back prolongs them, and
// ThreadSanitizer does not see the mutexes of an Abseil that was built without
// it.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace {

class ABSL_LOCKABLE Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex for its own lifetime.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Lets threads wait until a condition over data guarded by a mutex is true; all
// waits use the steady clock. Notify while holding the mutex, after each change
// that may make the condition true; then a thread whose wait has ended may
// destroy both immediately.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  // The mutex must be held; `condition` is called with it held.
  template <typename Condition>
  void Wait(Mutex* mutex, Condition condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex);
    condition_.wait(held.lock, condition);
  }

  // Waits until `deadline` at most. Returns the value of `condition`.
  template <typename Condition>
  bool WaitUntil(Mutex* mutex, SteadyTime deadline, Condition condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex);
    return condition_.wait_until(held.lock, deadline.ToChrono(), condition);
  }

  // Waits for `timeout` at most. Returns the value of `condition`.
  template <typename Condition>
  bool WaitFor(Mutex* mutex, absl::Duration timeout, Condition condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return WaitUntil(mutex, SteadyNow() + timeout, condition);
  }

 private:
  // Wraps the held mutex in the type that std::condition_variable requires.
  struct Held {
    explicit Held(Mutex* mutex) : lock(mutex->mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

// An event that happens once.
// Threads: any; a thread that has seen that it happened may destroy it.
class Notification {
 public:
  Notification() = default;
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;

  // Must be called only once.
  void Notify();
  bool HasBeenNotified() const;
  void WaitForNotification() const;
  // Waits for at most `timeout`; returns whether the event has happened.
  bool WaitForNotificationWithTimeout(absl::Duration timeout) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
