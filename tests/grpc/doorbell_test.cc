// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/doorbell.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace millrace {
namespace {

TEST(DoorbellTest, RingBeforeTheWaitIsHeard) {
  Doorbell bell;
  bell.Ring();
  bell.Await(absl::Hours(1));
}

TEST(DoorbellTest, RingDuringTheWaitIsHeard) {
  Doorbell bell;
  std::thread ringer([&] {
    absl::SleepFor(absl::Milliseconds(20));
    bell.Ring();
  });
  bell.Await(absl::Hours(1));
  ringer.join();
}

TEST(DoorbellTest, EachRingIsHeardOnceAndWaitsEnd) {
  Doorbell bell;
  bell.Ring();
  bell.Ring();
  bell.Await(absl::Hours(1));
  const absl::Time start = absl::Now();
  bell.Await(absl::Milliseconds(50));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(45));
  bell.Await(absl::ZeroDuration());
}

}  // namespace
}  // namespace millrace
