// SPDX-License-Identifier: Apache-2.0
#include "server/load/recent_calls.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr SteadyTime kStart;

SteadyTime At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(RecentCallsTest, SaysNothingBeforeTheFirstCall) {
  const RecentCalls::Summary summary = RecentCalls(kStart).Summarize(At(9));
  EXPECT_EQ(summary.per_second, 0);
  EXPECT_EQ(summary.p50, absl::ZeroDuration());
  EXPECT_EQ(summary.p99, absl::ZeroDuration());
}

TEST(RecentCallsTest, PercentilesAreTimesOfCalls) {
  RecentCalls calls(kStart);
  // 200 times, in an order that is neither rising nor falling.
  for (int i = 0; i < 200; ++i) {
    calls.Note(absl::Milliseconds(1 + (i * 77) % 200), At(i / 10.0));
  }
  const RecentCalls::Summary summary = calls.Summarize(At(20));
  EXPECT_DOUBLE_EQ(summary.per_second, 10);
  EXPECT_EQ(summary.p50, absl::Milliseconds(100));
  EXPECT_EQ(summary.p99, absl::Milliseconds(198));
}

TEST(RecentCallsTest, OneCallIsAllPercentiles) {
  RecentCalls calls(kStart);
  calls.Note(absl::Milliseconds(3), At(1));
  EXPECT_EQ(calls.Summarize(At(2)).p50, absl::Milliseconds(3));
  EXPECT_EQ(calls.Summarize(At(2)).p99, absl::Milliseconds(3));
}

TEST(RecentCallsTest, ForgetsCallsAfterAMinute) {
  RecentCalls calls(kStart);
  calls.Note(absl::Seconds(5), At(1));
  calls.Note(absl::Seconds(1), At(40));
  EXPECT_EQ(calls.Summarize(At(60)).p99, absl::Seconds(5));
  EXPECT_EQ(calls.Summarize(At(62)).p99, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(calls.Summarize(At(62)).per_second, 1.0 / 60);
  EXPECT_EQ(calls.Summarize(At(200)).p99, absl::ZeroDuration());
  EXPECT_EQ(calls.Summarize(At(200)).per_second, 0);
}

TEST(RecentCallsTest, KeepsTheTimesOfTheLastCallsOnly) {
  RecentCalls calls(kStart);
  for (int i = 0; i < 100; ++i) calls.Note(absl::Seconds(9), At(1));
  for (size_t i = 0; i < RecentCalls::kMaxTimes; ++i) {
    calls.Note(absl::Seconds(1), At(2));
  }
  EXPECT_EQ(calls.Summarize(At(3)).p99, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(calls.Summarize(At(4)).per_second, (100 + 1024) / 4.0);
}

}  // namespace
}  // namespace millrace
