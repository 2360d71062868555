// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/timer.h"

namespace millrace {

// Wakes calls that take a long time, from a thread of its own. gRPC's timers
// are not used because they wait for a time of day, so that they are late when
// the clock is set back.
// Threads: any thread may call any method, except that the timer's own thread
// must not destroy it. Sleepers may outlive the timer.
class CallTimer final : public Timer {
 public:
  CallTimer();
  // Once this returns, no sleeper will be woken.
  ~CallTimer() override;
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  SteadyTime Now() const override { return SteadyNow(); }
  // Wakes it at most a few milliseconds late.
  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper) override;
  bool Remove(const Ticket& ticket) override;

 private:
  void Run();
  SteadyTime NextWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar sooner_;  // signalled if NextWake() < next_, or when stopping
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  // When the thread wakes next.
  SteadyTime next_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
