// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/minute_sum.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// How many calls ended in the last minute, and how long they took.
// Threads: any.
class RecentCalls {
 public:
  // The most calls whose times are kept: the last ones.
  static constexpr size_t kMaxTimes = 1024;

  explicit RecentCalls(SteadyTime start) : ended_(start) {}

  // A call that took `time` has ended.
  void Note(absl::Duration time, SteadyTime now);

  struct Summary {
    // Calls that ended per second in the last minute; since the start in the
    // first one (see MinuteSum).
    double per_second = 0;
    // Of the times that are kept of the last minute, the smallest that is at
    // least as long as half of them, and 99 of 100; zero if there are none.
    absl::Duration p50;
    absl::Duration p99;
  };
  Summary Summarize(SteadyTime now) const;

 private:
  struct Ended {
    SteadyTime at;
    absl::Duration time;
  };

  mutable Mutex mutex_;
  // Changes as it is read, because it keeps only a minute.
  mutable MinuteSum ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ended> latest_ ABSL_GUARDED_BY(mutex_);  // a ring buffer
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;            // in latest_
};

}  // namespace millrace
