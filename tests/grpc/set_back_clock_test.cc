// SPDX-License-Identifier: Apache-2.0
// The clock of the machine is set back by an hour, as an administrator or NTP
// may do: nobody must wait for that hour to come again.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "absl/time/clock.h"
#include "common/grpc/fleet.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"

namespace {
std::atomic<int64_t> seconds_ahead = 0;
}  // namespace

// In the place of the C library's, for all of this program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += seconds_ahead;
  return result;
}

namespace millrace {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

bool AwaitDescribes(const testing::ScriptedSampler& server, int count) {
  const absl::Time end = absl::Now() + kPatience;
  while (server.describes() < count && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  return server.describes() >= count;
}

TEST(SetBackClockTest, FleetGoesOnAsking) {
  seconds_ahead = 3600;
  testing::FleetHarness real(testing::SmallGraph(), 1);
  const testing::ScriptedSampler server(real.Stub(0), {});
  FleetOptions options;
  options.list = server.address();
  options.ready_interval = absl::Milliseconds(300);
  options.dns_interval = absl::Milliseconds(300);
  auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  ASSERT_TRUE((*fleet)->Pick(0, absl::Now() + kPatience).ok());
  AwaitDescribes(server, server.describes() + 1);
  absl::SleepFor(absl::Milliseconds(100));  // and the fleet sleeps
  seconds_ahead = 0;
  EXPECT_TRUE(AwaitDescribes(server, server.describes() + 4));
}

}  // namespace
}  // namespace millrace
