// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call_timer.h"

#include <grpcpp/alarm.h>

#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace millrace {
namespace {

// The alarm rings at multiples of this, so that short waits share it.
constexpr absl::Duration kTick = absl::Milliseconds(5);

absl::Time NextTick(absl::Time time) {
  return absl::UnixEpoch() + absl::Ceil(time - absl::UnixEpoch(), kTick);
}

}  // namespace

class CallTimer::Sleepers : public std::enable_shared_from_this<Sleepers> {
 public:
  Ticket Add(absl::Time when, std::shared_ptr<Sleeper> sleeper) {
    absl::MutexLock lock(&mutex_);
    const Ticket ticket{NextTick(when), ++last_};
    asleep_.emplace(ticket, std::move(sleeper));
    if (ticket.first < alarm_time_) SetAlarm(ticket.first);
    return ticket;
  }

  bool Remove(const Ticket& ticket) {
    // The alarm stays: others may want it.
    std::map<Ticket, std::shared_ptr<Sleeper>>::node_type removed;
    absl::MutexLock lock(&mutex_);
    removed = asleep_.extract(ticket);
    return !removed.empty();
  }

  void Close() {
    std::map<Ticket, std::shared_ptr<Sleeper>> asleep;
    std::unique_ptr<grpc::Alarm> alarm;
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    asleep.swap(asleep_);
    alarm = std::move(alarm_);
  }

 private:
  void SetAlarm(absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    alarm_time_ = when;
    // A new one each time: one is replaced from within its own callback.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(absl::ToChronoTime(when),
                [self = shared_from_this(), when](bool) { self->Wake(when); });
  }

  // The alarm of `alarm_time` has rung, or another has taken its place.
  void Wake(absl::Time alarm_time) {
    std::vector<std::shared_ptr<Sleeper>> due;
    {
      absl::MutexLock lock(&mutex_);
      if (closed_ || alarm_time != alarm_time_) return;
      const absl::Time now = absl::Now();
      while (!asleep_.empty() && asleep_.begin()->first.first <= now) {
        due.push_back(std::move(asleep_.begin()->second));
        asleep_.erase(asleep_.begin());
      }
      alarm_time_ = absl::InfiniteFuture();
      if (!asleep_.empty()) SetAlarm(asleep_.begin()->first.first);
    }
    for (const std::shared_ptr<Sleeper>& sleeper : due) sleeper->OnWake();
  }

  absl::Mutex mutex_;
  std::map<Ticket, std::shared_ptr<Sleeper>> asleep_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time alarm_time_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

CallTimer::CallTimer() : sleepers_(std::make_shared<Sleepers>()) {}
CallTimer::~CallTimer() { sleepers_->Close(); }

CallTimer::Ticket CallTimer::Add(absl::Time when,
                                 std::shared_ptr<Sleeper> sleeper) {
  return sleepers_->Add(when, std::move(sleeper));
}

bool CallTimer::Remove(const Ticket& ticket) {
  return sleepers_->Remove(ticket);
}

}  // namespace millrace
