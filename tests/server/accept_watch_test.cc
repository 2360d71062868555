// SPDX-License-Identifier: Apache-2.0
#include "server/accept_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/silent_listener.h"

namespace millrace {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(30);

AcceptWatch::Options Often() {
  return {.interval = absl::Milliseconds(20),
          .patience = absl::Milliseconds(200),
          .attempts = 3};
}

HostPort Local(int port) { return {"127.0.0.1", static_cast<uint16_t>(port)}; }

TEST(AcceptWatchTest, NoticesAServerThatIsGone) {
  testing::FleetHarness fleet(testing::SmallGraph(), 1);
  Notification lost;
  const AcceptWatch watch(Local(fleet.server(0).port()), Often(),
                          [&] { lost.Notify(); });
  EXPECT_FALSE(lost.WaitForNotificationWithTimeout(absl::Seconds(1)));
  fleet.StopServer(0);
  EXPECT_TRUE(lost.WaitForNotificationWithTimeout(kSoon));
}

// As after an accept that failed: the port is open, and the kernel connects.
TEST(AcceptWatchTest, NoticesAServerThatAcceptsNobodyAnyMore) {
  const testing::SilentListener listener;
  Notification lost;
  const AcceptWatch watch(Local(listener.port()), Often(),
                          [&] { lost.Notify(); });
  // The first is answered: it is closed.
  listener.AcceptAndClose();
  EXPECT_TRUE(lost.WaitForNotificationWithTimeout(kSoon));
}

TEST(AcceptWatchTest, KeepsQuietWhereItNeverGotAnAnswer) {
  const testing::SilentListener listener;
  Notification lost;
  const AcceptWatch watch(Local(listener.port()), Often(),
                          [&] { lost.Notify(); });
  EXPECT_FALSE(lost.WaitForNotificationWithTimeout(absl::Seconds(2)));
}

TEST(AcceptWatchTest, EndsAtOnce) {
  const testing::SilentListener listener;
  std::optional<AcceptWatch> watch(
      std::in_place, Local(listener.port()),
      AcceptWatch::Options{.patience = absl::Hours(1)}, [] {});
  listener.AwaitConnection();
  const SteadyTime start = SteadyNow();
  watch.reset();
  EXPECT_LT(SteadyNow() - start, kSoon);
}

}  // namespace
}  // namespace millrace
