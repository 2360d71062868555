// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"

namespace millrace {

// What a CallTimer wakes.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // On a gRPC thread; must not block.
  virtual void OnWake() = 0;
};

// Wakes calls that take long. Most are over before: one alarm of gRPC serves
// them all, where one for each would cost more than a small call.
// Threads: any. Sleepers may live, and be woken, longer than the timer.
class CallTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // What Remove() takes; each is given once.
  using Ticket = std::pair<Clock::time_point, uint64_t>;

  CallTimer();
  ~CallTimer();  // wakes nobody any more, but for those it is about to
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  // Wakes `sleeper` once, after `wait` or some milliseconds more.
  Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper);
  // Whether it was not woken, and will not be.
  bool Remove(const Ticket& ticket);

 private:
  class Sleepers;
  // Shared with the alarm, which gRPC may keep longer.
  const std::shared_ptr<Sleepers> sleepers_;
};

}  // namespace millrace
