// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call_timer.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <ratio>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace millrace {
namespace {

using Time = CallTimer::Clock::time_point;

// The alarm rings at multiples of this, so that short waits share it: 5 ms.
using Ticks = std::chrono::duration<int64_t, std::ratio<1, 200>>;

Time NextTickAfter(absl::Duration wait) {
  const Time end = CallTimer::Clock::now() + absl::ToChronoNanoseconds(std::max(
                                                 wait, absl::ZeroDuration()));
  return Time(std::chrono::ceil<Ticks>(end.time_since_epoch()));
}

gpr_timespec ToMonotonic(Time time) {
  gpr_timespec spec = gpr_time_from_nanos(
      std::chrono::nanoseconds(time.time_since_epoch()).count(), GPR_TIMESPAN);
  spec.clock_type = GPR_CLOCK_MONOTONIC;  // CLOCK_MONOTONIC, as Clock is
  return spec;
}

}  // namespace

class CallTimer::Sleepers : public std::enable_shared_from_this<Sleepers> {
 public:
  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper) {
    MutexLock lock(&mutex_);
    const Ticket ticket{NextTickAfter(wait), ++last_};
    asleep_.emplace(ticket, std::move(sleeper));
    if (ticket.first < alarm_time_) SetAlarm(ticket.first);
    return ticket;
  }

  bool Remove(const Ticket& ticket) {
    // The alarm stays: others may want it.
    std::map<Ticket, std::shared_ptr<Sleeper>>::node_type removed;
    MutexLock lock(&mutex_);
    removed = asleep_.extract(ticket);
    return !removed.empty();
  }

  void Close() {
    std::map<Ticket, std::shared_ptr<Sleeper>> asleep;
    std::unique_ptr<grpc::Alarm> alarm;
    MutexLock lock(&mutex_);
    ++alarm_number_;
    asleep.swap(asleep_);
    alarm = std::move(alarm_);
  }

 private:
  void SetAlarm(Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    alarm_time_ = when;
    const uint64_t number = ++alarm_number_;
    // A new one each time: one is replaced from within its own callback.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(ToMonotonic(when), [self = shared_from_this(), number](bool) {
      self->Wake(number);
    });
  }

  // That alarm has rung, or another has taken its place, which is no later:
  // then whatever this one was for is that one's to do, even if both rang.
  void Wake(uint64_t alarm) {
    // Before the lock: gRPC runs what is left of these when it ends, with a
    // lock of its own that making an alarm takes, too.
    if (alarm != alarm_number_) return;
    std::vector<std::shared_ptr<Sleeper>> due;
    {
      MutexLock lock(&mutex_);
      if (alarm != alarm_number_) return;
      const Time now = Clock::now();
      while (!asleep_.empty() && asleep_.begin()->first.first <= now) {
        due.push_back(std::move(asleep_.begin()->second));
        asleep_.erase(asleep_.begin());
      }
      alarm_time_ = Time::max();
      if (!asleep_.empty()) SetAlarm(asleep_.begin()->first.first);
    }
    for (const std::shared_ptr<Sleeper>& sleeper : due) sleeper->OnWake();
  }

  // Of the alarm that counts; changed under the mutex.
  std::atomic<uint64_t> alarm_number_ = 0;

  Mutex mutex_;
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  Time alarm_time_ ABSL_GUARDED_BY(mutex_) = Time::max();
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

CallTimer::CallTimer() : sleepers_(std::make_shared<Sleepers>()) {}
CallTimer::~CallTimer() { sleepers_->Close(); }

CallTimer::Ticket CallTimer::Add(absl::Duration wait,
                                 std::shared_ptr<Sleeper> sleeper) {
  return sleepers_->Add(wait, std::move(sleeper));
}

bool CallTimer::Remove(const Ticket& ticket) {
  return sleepers_->Remove(ticket);
}

}  // namespace millrace
