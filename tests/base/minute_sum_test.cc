// SPDX-License-Identifier: Apache-2.0
#include "common/base/minute_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace millrace {
namespace {

constexpr SteadyTime kStart;

SteadyTime At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(MinuteSumTest, IsZeroAtTheStart) {
  MinuteSum sum(kStart);
  EXPECT_EQ(sum.Total(kStart), 0);
  EXPECT_EQ(sum.PerSecond(kStart), 0);
}

TEST(MinuteSumTest, CountsFromTheStartInTheFirstMinute) {
  MinuteSum sum(kStart);
  sum.Add(5, At(0));
  sum.Add(1, At(10));
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(12)), 6.0 / 12);
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(0.5 + 12)), 6 / 12.5);
}

TEST(MinuteSumTest, ForgetsWhatIsOlderThanAMinute) {
  MinuteSum sum(kStart);
  sum.Add(100, At(9.5));
  sum.Add(30, At(10.5));
  // The minute begins with the tenth second.
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(70.25)), 30 / 60.25);
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(71.25)), 0);
  EXPECT_EQ(sum.Total(At(71.25)), 130);
}

TEST(MinuteSumTest, GrowsBetweenCalls) {
  MinuteSum sum(kStart);
  sum.SetGrowth(2, At(5));
  EXPECT_DOUBLE_EQ(sum.Total(At(8)), 6);
  sum.SetGrowth(0, At(10));
  EXPECT_DOUBLE_EQ(sum.Total(At(20)), 10);
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(20)), 0.5);
  // Of the growth, seconds 7 to 10 are in the last minute.
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(67)), 6.0 / 60);
}

// Whether it is asked every second or once an hour makes no difference.
TEST(MinuteSumTest, LongSilenceIsFilledIn) {
  MinuteSum sum(kStart);
  sum.SetGrowth(3, At(1));
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(3600)), 3);
  EXPECT_DOUBLE_EQ(sum.Total(At(3600)), 3 * 3599);
  sum.SetGrowth(0, At(3600));
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(3630)), 3 * 30.0 / 60);
  EXPECT_DOUBLE_EQ(sum.PerSecond(At(9000)), 0);
}

TEST(MinuteSumTest, EarlierTimesCountAsTheLatest) {
  MinuteSum sum(kStart);
  sum.Add(1, At(10));
  sum.Add(1, At(9));
  sum.SetGrowth(1, At(5));
  EXPECT_DOUBLE_EQ(sum.Total(At(11)), 3);
}

// Compares with the list of everything that was added.
TEST(MinuteSumTest, AgreesWithTheListOfAmounts) {
  std::mt19937 random(7);
  std::exponential_distribution<double> pause(1);
  MinuteSum sum(kStart);
  std::vector<double> times;
  double now = 0;
  for (int i = 0; i < 2000; ++i) {
    now += i % 100 == 0 ? 80 * pause(random) : pause(random);
    times.push_back(now);
    sum.Add(1, At(now));
    const double from = std::max(0.0, std::floor(now) - 60);
    const auto recent = std::count_if(times.begin(), times.end(),
                                      [&](double t) { return t >= from; });
    ASSERT_NEAR(sum.PerSecond(At(now)),
                static_cast<double>(recent) / (now - from), 1e-6)
        << now;
  }
}

}  // namespace
}  // namespace millrace
