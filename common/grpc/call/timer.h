// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace {

// An object that a Timer can wake.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  // Called on the timer's thread; must not block.
  virtual void OnWake() = 0;
};

// Tells the time and wakes objects: a CallTimer, or a fake whose time does not
// pass by itself.
// Threads: any thread may call any method.
class Timer {
 public:
  // Identifies a wake-up for Remove(); unique.
  using Ticket = std::pair<SteadyTime, uint64_t>;

  virtual ~Timer() = default;

  virtual SteadyTime Now() const = 0;

  // Wakes `sleeper` once, after `wait` or a little later.
  virtual Ticket Add(absl::Duration wait, std::shared_ptr<Sleeper> sleeper) = 0;
  // Returns true if the sleeper has not been woken and will not be, false if it
  // has been or is about to be.
  virtual bool Remove(const Ticket& ticket) = 0;
};

}  // namespace millrace
