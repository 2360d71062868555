// SPDX-License-Identifier: Apache-2.0
#include "common/base/steady_time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace millrace {
namespace {

constexpr SteadyTime kFuture = SteadyTime::InfiniteFuture();
constexpr SteadyTime kPast = SteadyTime::InfinitePast();

TEST(SteadyTimeTest, NeverGoesBackwards) {
  const SteadyTime before = SteadyNow();
  const SteadyTime after = SteadyNow();
  EXPECT_LE(before, after);
  EXPECT_LT(SteadyTime(), before);
  EXPECT_LE(before.ToChrono(), std::chrono::steady_clock::now());
}

TEST(SteadyTimeTest, CountsDurations) {
  const SteadyTime start = SteadyTime() + absl::Hours(1);
  EXPECT_EQ(start + absl::Seconds(2) - start, absl::Seconds(2));
  EXPECT_EQ(start - absl::Seconds(2) - start, -absl::Seconds(2));
  EXPECT_EQ(start.ToChrono().time_since_epoch(), std::chrono::hours(1));
}

TEST(SteadyTimeTest, Saturates) {
  const SteadyTime start = SteadyTime() + absl::Hours(1);
  EXPECT_EQ(start + absl::InfiniteDuration(), kFuture);
  EXPECT_EQ(start - absl::InfiniteDuration(), kPast);
  EXPECT_EQ(kFuture - absl::Hours(1), kFuture);
  EXPECT_EQ(start - kPast, absl::InfiniteDuration());
  EXPECT_LT(kPast, start);
  EXPECT_LT(start, kFuture);
  EXPECT_EQ(kFuture.ToChrono(), std::chrono::steady_clock::time_point::max());
}

}  // namespace
}  // namespace millrace
