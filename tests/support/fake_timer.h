// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/timer.h"

namespace millrace::testing {

// A Timer whose time passes only when a test says so.
// Threads: any thread may call any method. Sleepers are woken by the thread
// that lets time pass, one at a time and without a lock.
class FakeTimer final : public Timer {
 public:
  SteadyTime Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }

  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper) override {
    MutexLock lock(&mutex_);
    const Ticket ticket{now_ + std::max(wait, absl::ZeroDuration()), ++last_};
    asleep_.emplace(ticket, std::move(sleeper));
    return ticket;
  }

  bool Remove(const Ticket& ticket) override {
    MutexLock lock(&mutex_);
    return asleep_.erase(ticket) > 0;
  }

  // Lets `time` pass. Each sleeper is woken when its time comes, including
  // those added in the meantime.
  void Advance(absl::Duration time) {
    const SteadyTime end = Now() + time;
    while (WakeNext(end)) {
    }
    MutexLock lock(&mutex_);
    now_ = std::max(now_, end);
  }

  // Lets `time` pass during which the process is stopped: sleepers are woken
  // only at its end.
  void AdvanceStopped(absl::Duration time) {
    {
      MutexLock lock(&mutex_);
      now_ += time;
    }
    Advance(absl::ZeroDuration());
  }

  size_t asleep() const {
    MutexLock lock(&mutex_);
    return asleep_.size();
  }

 private:
  // Wakes the next sleeper, if its time comes by `end`.
  bool WakeNext(SteadyTime end) {
    std::shared_ptr<Sleeper> sleeper;
    {
      MutexLock lock(&mutex_);
      const auto next = asleep_.begin();
      if (next == asleep_.end() || next->first.first > end) return false;
      now_ = std::max(now_, next->first.first);
      sleeper = std::move(next->second);
      asleep_.erase(next);
    }
    sleeper->OnWake();
    return true;
  }

  mutable Mutex mutex_;
  SteadyTime now_ ABSL_GUARDED_BY(mutex_) = SteadyTime() + absl::Hours(1);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::testing
