// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/call_timer.h"

#include <algorithm>
#include <vector>

namespace millrace {
namespace {

// The thread wakes at multiples of this, so that short waits share a wake-up.
constexpr absl::Duration kTick = absl::Milliseconds(5);

SteadyTime NextTickAfter(absl::Duration wait) {
  const SteadyTime end = SteadyNow() + std::max(wait, absl::ZeroDuration());
  return SteadyTime() + absl::Ceil(end - SteadyTime(), kTick);
}

}  // namespace

CallTimer::CallTimer() : thread_([this] { Run(); }) {}

CallTimer::~CallTimer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    sooner_.NotifyOne();
  }
  thread_.join();
}

CallTimer::Ticket CallTimer::Add(absl::Duration wait,
                                 std::shared_ptr<Sleeper> sleeper) {
  MutexLock lock(&mutex_);
  const Ticket ticket{NextTickAfter(wait), ++last_};
  asleep_.emplace(ticket, std::move(sleeper));
  if (ticket.first < next_) sooner_.NotifyOne();
  return ticket;
}

bool CallTimer::Remove(const Ticket& ticket) {
  // Does not put off the thread's next wake-up: most calls are over before they
  // would be woken, and rescheduling for each of them would cost more.
  std::map<Ticket, std::shared_ptr<Sleeper>>::node_type removed;
  MutexLock lock(&mutex_);
  removed = asleep_.extract(ticket);
  return !removed.empty();
}

SteadyTime CallTimer::NextWake() const {
  return asleep_.empty() ? SteadyTime::InfiniteFuture()
                         : asleep_.begin()->first.first;
}

void CallTimer::Run() {
  while (true) {
    std::vector<std::shared_ptr<Sleeper>> due;
    {
      MutexLock lock(&mutex_);
      next_ = NextWake();
      sooner_.WaitUntil(&mutex_, next_,
                        [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                          return stopping_ || NextWake() < next_;
                        });
      if (stopping_) return;
      const SteadyTime now = SteadyNow();
      while (NextWake() <= now) {
        due.push_back(std::move(asleep_.begin()->second));
        asleep_.erase(asleep_.begin());
      }
    }
    for (const std::shared_ptr<Sleeper>& sleeper : due) sleeper->OnWake();
  }
}

}  // namespace millrace
