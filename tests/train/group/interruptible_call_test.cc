// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/interruptible_call.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/mutex.h"

namespace millrace::testing {
namespace {

// A call that does not return until `released` is notified.
auto Blocked(std::shared_ptr<Notification> released) {
  return [released] {
    released->WaitForNotification();
    return 1;
  };
}

TEST(InterruptibleCallTest, ReturnsWhatTheFunctionReturns) {
  const auto moved = CallInterruptibly(
      SteadyTime::InfiniteFuture(),
      [text = std::make_unique<std::string>("own")] { return *text; });
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(*moved, "own");
}

TEST(InterruptibleCallTest, ReturnsAtTheDeadline) {
  const auto released = std::make_shared<Notification>();
  EXPECT_EQ(CallInterruptibly(SteadyNow(), Blocked(released)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  released->Notify();
}

void CallAndInterrupt() {
  InstallInterruptHandler();
  raise(SIGTERM);
  const absl::Status status =
      CallInterruptibly(SteadyTime::InfiniteFuture(),
                        Blocked(std::make_shared<Notification>()))
          .status();
  std::_Exit(absl::IsCancelled(status) ? 0 : 1);
}

TEST(InterruptibleCallTest, ReturnsWhenInterrupted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CallAndInterrupt(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace::testing
