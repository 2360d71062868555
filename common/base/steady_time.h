// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>

#include "absl/time/time.h"

namespace millrace {

// A point in time of the steady clock, which cannot be set. All waits and
// durations are measured with it; absl::Time is for the time of day. Arithmetic
// saturates like that of absl::Duration.
class SteadyTime {
 public:
  // The clock's epoch, which is before the start of this process.
  constexpr SteadyTime() = default;
  static constexpr SteadyTime InfiniteFuture() {
    return SteadyTime(absl::InfiniteDuration());
  }
  static constexpr SteadyTime InfinitePast() {
    return SteadyTime(-absl::InfiniteDuration());
  }

  SteadyTime& operator+=(absl::Duration duration) {
    since_epoch_ += duration;
    return *this;
  }
  SteadyTime& operator-=(absl::Duration duration) {
    since_epoch_ -= duration;
    return *this;
  }
  friend SteadyTime operator+(SteadyTime time, absl::Duration duration) {
    return time += duration;
  }
  friend SteadyTime operator-(SteadyTime time, absl::Duration duration) {
    return time -= duration;
  }
  friend absl::Duration operator-(SteadyTime end, SteadyTime start) {
    return end.since_epoch_ - start.since_epoch_;
  }

  friend constexpr bool operator==(SteadyTime a, SteadyTime b) {
    return a.since_epoch_ == b.since_epoch_;
  }
  friend constexpr std::strong_ordering operator<=>(SteadyTime a,
                                                    SteadyTime b) {
    if (a.since_epoch_ < b.since_epoch_) return std::strong_ordering::less;
    if (b.since_epoch_ < a.since_epoch_) return std::strong_ordering::greater;
    return std::strong_ordering::equal;
  }

  // Infinite times become the clock's extremes.
  std::chrono::steady_clock::time_point ToChrono() const {
    return std::chrono::steady_clock::time_point(
        absl::ToChronoNanoseconds(since_epoch_));
  }

 private:
  friend SteadyTime SteadyNow();
  explicit constexpr SteadyTime(absl::Duration since_epoch)
      : since_epoch_(since_epoch) {}

  absl::Duration since_epoch_;
};

inline SteadyTime SteadyNow() {
  return SteadyTime(
      absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace millrace
