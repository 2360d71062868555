// SPDX-License-Identifier: Apache-2.0
#include "server/load/recent_calls.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

// Reorders `times`, which must not be empty.
absl::Duration Percentile(double share, std::vector<absl::Duration>& times) {
  const auto rank = static_cast<ptrdiff_t>(
      std::ceil(share * static_cast<double>(times.size())));
  const auto at = times.begin() + std::max<ptrdiff_t>(rank, 1) - 1;
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace

void RecentCalls::Note(absl::Duration time, SteadyTime now) {
  MutexLock lock(&mutex_);
  ended_.Add(1, now);
  if (latest_.size() < kMaxTimes) {
    latest_.push_back({now, time});
    return;
  }
  latest_[next_] = {now, time};
  next_ = (next_ + 1) % kMaxTimes;
}

RecentCalls::Summary RecentCalls::Summarize(SteadyTime now) const {
  Summary summary;
  std::vector<absl::Duration> times;
  {
    MutexLock lock(&mutex_);
    summary.per_second = ended_.PerSecond(now);
    for (const Ended& one : latest_) {
      if (now - one.at <= absl::Minutes(1)) times.push_back(one.time);
    }
  }
  if (times.empty()) return summary;
  summary.p50 = Percentile(0.5, times);
  summary.p99 = Percentile(0.99, times);
  return summary;
}

}  // namespace millrace
