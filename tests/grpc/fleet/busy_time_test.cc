// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/busy_time.h"

#include <gtest/gtest.h>

#include "common/base/steady_time.h"

namespace millrace {
namespace {

constexpr absl::Duration kMs = absl::Milliseconds(1);
const SteadyTime kStart = SteadyTime() + absl::Hours(1);

TEST(BusyTime, LastsAsLongAsTheServerSaysUpToALimit) {
  BusyTime busy;
  EXPECT_FALSE(busy.IsBusy(kStart));
  busy.Note(20 * kMs, kStart);
  EXPECT_TRUE(busy.IsBusy(kStart + 19 * kMs));
  EXPECT_FALSE(busy.IsBusy(kStart + 20 * kMs));

  BusyTime wild;
  wild.Note(absl::Hours(1), kStart);
  EXPECT_TRUE(wild.IsBusy(kStart + absl::Seconds(9)));
  EXPECT_FALSE(wild.IsBusy(kStart + absl::Seconds(10)));
  BusyTime nonsense;
  nonsense.Note(-absl::InfiniteDuration(), kStart);
  EXPECT_FALSE(nonsense.IsBusy(kStart));
}

// These answers are to calls that were sent before the first refusal.
TEST(BusyTime, IgnoresRefusalsOfEarlierCalls) {
  BusyTime busy;
  for (int i = 0; i < 20; ++i) busy.Note(20 * kMs, kStart + i * kMs);
  EXPECT_FALSE(busy.IsBusy(kStart + 20 * kMs));
}

TEST(BusyTime, DoublesOnEachRefusalSoonAfterTheLast) {
  BusyTime busy;
  SteadyTime now = kStart;
  for (const int want_ms : {20, 40, 80, 160, 320, 640, 1280, 2000, 2000}) {
    busy.Note(20 * kMs, now);
    EXPECT_TRUE(busy.IsBusy(now + (want_ms - 1) * kMs)) << want_ms;
    now += want_ms * kMs;
    EXPECT_FALSE(busy.IsBusy(now)) << want_ms;
    now += 999 * kMs;
  }
  now += kMs;  // a second since the last time
  busy.Note(20 * kMs, now);
  EXPECT_FALSE(busy.IsBusy(now + 20 * kMs));
}

}  // namespace
}  // namespace millrace
