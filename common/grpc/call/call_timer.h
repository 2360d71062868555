// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// An object that a CallTimer can wake.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Called on the timer's thread; must not block.
  virtual void OnWake() = 0;
};

// Wakes calls that take long, from a thread of its own. gRPC's timers are not
// used because they wait for a time of day, so that they are late when the
// clock is set back.
// Threads: any thread may call any method, except that the timer's own thread
// must not destroy it. Sleepers may outlive the timer.
class CallTimer {
 public:
  // Identifies a wake-up for Remove(); unique.
  using Ticket = std::pair<SteadyTime, uint64_t>;

  CallTimer();
  // Once this returns, no sleeper will be woken.
  ~CallTimer();
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  // Wakes `sleeper` once, after `wait` or a few milliseconds later.
  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper);
  // Returns true if the sleeper has not been woken and will not be, false if it
  // has been or is about to be.
  bool Remove(const Ticket& ticket);

 private:
  void Run();
  SteadyTime NextWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar sooner_;  // signalled if NextWake() < look_, or when stopping
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  // When the thread wakes next.
  SteadyTime look_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
