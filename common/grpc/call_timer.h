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

// What a CallTimer wakes.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // On the timer's thread; must not block.
  virtual void OnWake() = 0;
};

// Wakes calls that take long, from a thread of its own: gRPC's timers wait
// until a time of day, so that they are late when somebody sets the clock back.
// Threads: any; the destructor not on its own. Sleepers may live longer than
// the timer.
class CallTimer {
 public:
  // What Remove() takes; each is given once.
  using Ticket = std::pair<SteadyTime, uint64_t>;

  CallTimer();
  // Once this returns, no sleeper is woken any more.
  ~CallTimer();
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  // Wakes `sleeper` once, after `wait` or some milliseconds more.
  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper);
  // True: the sleeper was not woken and will not be. False: it was, or is about
  // to be.
  bool Remove(const Ticket& ticket);

 private:
  void Run();
  SteadyTime NextWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar sooner_;  // NextWake() is before look_, or this ends
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  // When the thread looks next.
  SteadyTime look_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace millrace
