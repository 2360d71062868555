// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <string>

#include "common/base/log.h"
#include "common/base/unique_fd.h"
#include "tests/support/captured_output.h"

namespace millrace {
namespace {

// Makes standard output and the log those of a terminal while it lives.
class TerminalOutput {
 public:
  TerminalOutput() : stdout_(dup(STDOUT_FILENO)), stderr_(dup(STDERR_FILENO)) {
    int master = -1, slave = -1;
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    master_ = UniqueFd(master);
    const UniqueFd terminal(slave);
    dup2(terminal.get(), STDOUT_FILENO);
    dup2(terminal.get(), STDERR_FILENO);
  }
  ~TerminalOutput() {
    dup2(stdout_.get(), STDOUT_FILENO);
    dup2(stderr_.get(), STDERR_FILENO);
  }

 private:
  const UniqueFd stdout_;
  const UniqueFd stderr_;
  UniqueFd master_;
};

TEST(StatusScreenTest, NothingIsLoggedToItsTerminal) {
  const LogLevel before = CurrentLogLevel();
  SetLogLevel(LogLevel::kWarning);
  LogLevel meanwhile, after;
  {
    const TerminalOutput terminal;
    {
      const StatusScreen screen;
      meanwhile = CurrentLogLevel();
    }
    after = CurrentLogLevel();
  }
  SetLogLevel(before);
  EXPECT_EQ(meanwhile, LogLevel::kOff);
  EXPECT_EQ(after, LogLevel::kWarning);
}

TEST(StatusScreenTest, TextsFollowEachOtherElsewhere) {
  const LogLevel before = CurrentLogLevel();
  testing::CapturedOutput output(STDOUT_FILENO);
  {
    StatusScreen screen;
    EXPECT_EQ(CurrentLogLevel(), before);
    EXPECT_TRUE(screen.Show("one\n").ok());
    EXPECT_TRUE(screen.Show("two\n").ok());
  }
  EXPECT_EQ(output.Stop(), "one\ntwo\n");
}

}  // namespace
}  // namespace millrace
