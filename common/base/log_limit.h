// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// Lets a number of events a second be logged, and counts the others.
// Threads: any.
class LogLimit {
 public:
  explicit LogLimit(int per_second) : per_second_(per_second) {}

  // Whether to log an event now: the number of events left out since the last
  // one that was logged; nullopt if this one is to be left out.
  std::optional<uint64_t> Take(SteadyTime now) {
    MutexLock lock(&mutex_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      logged_ = 0;
    }
    if (logged_ == per_second_) {
      ++left_out_;
      return std::nullopt;
    }
    ++logged_;
    return std::exchange(left_out_, 0);
  }

 private:
  const int per_second_;
  Mutex mutex_;
  // The start of the current second, and the events logged in it.
  SteadyTime second_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
  int logged_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
