// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/hedging.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace millrace {
namespace {

TEST(HedgingTest, AllowsOneInTwenty) {
  Hedging hedging;
  int taken = 0;
  for (int call = 1; call <= 1000; ++call) {
    hedging.NoteCall();
    taken += hedging.Take();
    EXPECT_LE(taken, call / 20);
  }
  EXPECT_GE(taken, 49);
  EXPECT_EQ(hedging.calls(), 1000);
  EXPECT_EQ(hedging.hedges(), taken);
}

TEST(HedgingTest, SavesNoMoreThanItsLimit) {
  Hedging hedging;
  for (int call = 0; call < 10'000; ++call) hedging.NoteCall();
  int taken = 0;
  while (hedging.Take()) ++taken;
  EXPECT_NEAR(taken, Hedging::kMaxSaved, 1);
}

TEST(HedgingTest, DelayIsThePercentileOfTheLatestTimes) {
  Hedging hedging;
  const auto note = [&hedging](int64_t milliseconds) {
    hedging.NoteAnswer(Hedging::Kind::kGather,
                       absl::Milliseconds(milliseconds));
  };
  for (size_t i = 0; i + 1 < Hedging::kMinTimes; ++i) note(1000);
  EXPECT_EQ(hedging.DelayOf(Hedging::Kind::kGather), std::nullopt);
  for (int i = 0; i < 1024; ++i) note(i % 100 + 1);
  const auto delay = hedging.DelayOf(Hedging::Kind::kGather);
  ASSERT_TRUE(delay.has_value());
  EXPECT_GE(*delay, absl::Milliseconds(90));
  EXPECT_LE(*delay, absl::Milliseconds(99));
  EXPECT_EQ(hedging.DelayOf(Hedging::Kind::kSample), std::nullopt);
}

}  // namespace
}  // namespace millrace
