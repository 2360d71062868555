// SPDX-License-Identifier: Apache-2.0
#include "common/base/minute_sum.h"

#include <algorithm>

namespace millrace {

int64_t MinuteSum::SecondOf(SteadyTime time) const {
  return absl::ToInt64Seconds(time - start_);
}

void MinuteSum::Advance(SteadyTime now) {
  if (now <= now_) return;
  const int64_t last = SecondOf(now);
  // Older seconds would be overwritten at once.
  for (int64_t second = std::max(SecondOf(now_) + 1, last - kSeconds);
       second <= last; ++second) {
    const absl::Duration until = start_ + absl::Seconds(second) - now_;
    at_second_[static_cast<size_t>(second) % at_second_.size()] =
        sum_ + growth_ * absl::ToDoubleSeconds(until);
  }
  sum_ += growth_ * absl::ToDoubleSeconds(now - now_);
  now_ = now;
}

void MinuteSum::Add(double amount, SteadyTime now) {
  Advance(now);
  sum_ += amount;
}

void MinuteSum::SetGrowth(double per_second, SteadyTime now) {
  Advance(now);
  growth_ = per_second;
}

double MinuteSum::Total(SteadyTime now) {
  Advance(now);
  return sum_;
}

double MinuteSum::PerSecond(SteadyTime now) {
  Advance(now);
  const int64_t from = std::max<int64_t>(SecondOf(now_) - kSeconds, 0);
  const double seconds =
      absl::ToDoubleSeconds(now_ - (start_ + absl::Seconds(from)));
  if (seconds <= 0) return 0;
  return (sum_ - at_second_[static_cast<size_t>(from) % at_second_.size()]) /
         seconds;
}

}  // namespace millrace
