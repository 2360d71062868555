// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace millrace {

// Wakes a thread that sleeps until there is something to do. Unlike a wait of
// absl's, which ends at a time of day, its sleep gets no longer when somebody
// sets the clock back.
// Threads: one waits, any rings.
class Doorbell {
 public:
  void Ring();
  // Sleeps until it rings, or has rung since the last call, and no longer than
  // `wait`.
  void Await(absl::Duration wait);

 private:
  std::mutex mutex_;  // absl's has no such condition variable
  std::condition_variable ring_;
  bool rung_ = false;
};

}  // namespace millrace
