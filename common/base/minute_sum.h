// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/steady_time.h"

namespace millrace {

// A sum that grows, and how fast it has grown in the last minute, in constant
// memory: it keeps what the sum was at the end of each of the last seconds.
// Times should not decrease; one before the latest counts as the latest.
// Not thread-safe.
class MinuteSum {
 public:
  // The sum is zero at `start`.
  explicit MinuteSum(SteadyTime start) : start_(start), now_(start) {}

  void Add(double amount, SteadyTime now);
  // From `now` on, the sum grows by `per_second`, until the next call.
  void SetGrowth(double per_second, SteadyTime now);

  double Total(SteadyTime now);
  // By how much the sum has grown per second since the last whole second, from
  // `start` on, that is at least a minute before `now`; since `start` in the
  // first minute. 0 at `start`.
  double PerSecond(SteadyTime now);

 private:
  static constexpr int64_t kSeconds = 60;

  int64_t SecondOf(SteadyTime time) const;
  // Records the seconds that have ended until `now`.
  void Advance(SteadyTime now);

  const SteadyTime start_;
  SteadyTime now_;
  double sum_ = 0;  // at now_
  double growth_ = 0;
  // The sum at the beginning of the latest kSeconds + 1 seconds, the one that
  // `now_` is in among them, by their number modulo the size.
  std::array<double, kSeconds + 1> at_second_ = {};
};

}  // namespace millrace
