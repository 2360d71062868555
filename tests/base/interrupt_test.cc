// SPDX-License-Identifier: Apache-2.0
#include "common/base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace millrace {
namespace {

// These tests run in child processes, because a signal affects the whole
// process.
TEST(InterruptDeathTest, FirstSignalSetsTheFlag) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          InstallInterruptHandler();
          InstallInterruptHandler();
          if (Interrupted() || !CheckInterrupted().ok()) std::exit(1);
          raise(signal);
          const bool cancelled = absl::IsCancelled(CheckInterrupted());
          std::exit(Interrupted() && cancelled ? 0 : 2);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

TEST(InterruptDeathTest, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        InstallInterruptHandler();
        raise(SIGTERM);
        raise(SIGINT);
        std::exit(0);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace millrace
