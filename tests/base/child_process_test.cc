// SPDX-License-Identifier: Apache-2.0
#include "common/base/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

constexpr int kLimitMs = 20'000;

ChildProcessOptions Shell(const std::string& script) {
  ChildProcessOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  sigemptyset(&options.signal_mask);
  return options;
}

// Waits for the end of `process`; nullopt if it keeps running.
std::optional<int> Wait(ChildProcess& process) {
  pollfd end{process.end_fd(), POLLIN, 0};
  if (poll(&end, 1, kLimitMs) != 1) return std::nullopt;
  return process.TryWait();
}

// Reads from a pipe until it is closed or `enough` bytes have been read.
std::string ReadAll(int fd, size_t enough = SIZE_MAX) {
  std::string text;
  char buffer[256];
  pollfd ready{fd, POLLIN, 0};
  while (text.size() < enough && poll(&ready, 1, kLimitMs) == 1) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
  }
  UniqueFd read_end, write_end;
};

TEST(ChildProcessTest, ReportsTheStatus) {
  auto process = ChildProcess::Start(Shell("exit 7"));
  ASSERT_TRUE(process.ok()) << process.status();
  const std::optional<int> status = Wait(*process);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  EXPECT_EQ(DescribeWaitStatus(*status), "ended with status 7");
  EXPECT_FALSE(process->running());
  EXPECT_EQ(process->TryWait(), std::nullopt);
}

TEST(ChildProcessTest, PassesSignalsOn) {
  auto process = ChildProcess::Start(Shell("exec sleep 1000"));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->TryWait(), std::nullopt);
  EXPECT_TRUE(process->running());
  process->Signal(SIGTERM);
  const std::optional<int> status = Wait(*process);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(DescribeWaitStatus(*status),
            "was killed by signal 15 (Terminated)");
}

TEST(ChildProcessTest, ReportsAProgramThatCannotBeExecuted) {
  ChildProcessOptions options = Shell("");
  options.arguments = {"/no/such/program"};
  auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  const std::optional<int> status = Wait(*process);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WEXITSTATUS(*status), 127);
}

TEST(ChildProcessTest, HidesVariables) {
  setenv("MILLRACE_CHILD_TEST_HIDDEN", "hidden", 1);
  setenv("MILLRACE_CHILDREN", "kept", 1);
  Pipe pipe;
  ChildProcessOptions options = Shell(
      "echo $MILLRACE_CHILD_TEST_HIDDEN $MILLRACE_CHILD_TEST_NEW "
      "$MILLRACE_CHILDREN >&2");
  options.environment = {{"MILLRACE_CHILD_TEST_NEW", "new"}};
  options.hidden_prefix = "MILLRACE_CHILD_";
  options.stderr_fd = pipe.write_end.get();
  auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  pipe.write_end = UniqueFd();
  EXPECT_EQ(ReadAll(pipe.read_end.get()), "new kept\n");
}

TEST(ChildProcessTest, ReplacesVariablesAndStderr) {
  setenv("MILLRACE_CHILD_TEST_OLD", "old", 1);
  setenv("MILLRACE_CHILD_TEST_KEPT", "kept", 1);
  Pipe pipe;
  ChildProcessOptions options = Shell(
      "echo $MILLRACE_CHILD_TEST_OLD $MILLRACE_CHILD_TEST_KEPT "
      "$MILLRACE_CHILD_TEST_NEW >&2");
  options.environment = {{"MILLRACE_CHILD_TEST_OLD", "replaced"},
                         {"MILLRACE_CHILD_TEST_NEW", "new"}};
  options.stderr_fd = pipe.write_end.get();
  auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  pipe.write_end = UniqueFd();
  EXPECT_EQ(ReadAll(pipe.read_end.get()), "replaced kept new\n");
}

TEST(ChildProcessTest, HasAProcessGroupOfItsOwn) {
  Pipe pipe;
  ChildProcessOptions options =
      Shell("test $(cut -d' ' -f5 /proc/$$/stat) = $$ && echo own >&2");
  options.stderr_fd = pipe.write_end.get();
  auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.status();
  pipe.write_end = UniqueFd();
  EXPECT_EQ(ReadAll(pipe.read_end.get()), "own\n");
}

// The pipe is closed only when the child has ended.
TEST(ChildProcessTest, EndsWithTheObject) {
  Pipe pipe;
  {
    ChildProcessOptions options = Shell("echo up >&2; exec sleep 1000");
    options.stderr_fd = pipe.write_end.get();
    auto process = ChildProcess::Start(options);
    ASSERT_TRUE(process.ok()) << process.status();
    pipe.write_end = UniqueFd();
    EXPECT_EQ(ReadAll(pipe.read_end.get(), /*enough=*/3), "up\n");
    const ChildProcess moved = *std::move(process);
    EXPECT_TRUE(moved.running());
  }
  EXPECT_EQ(ReadAll(pipe.read_end.get()), "");
}

// A grandchild does not outlive the child that started it, which is killed.
TEST(ChildProcessTest, EndsWithTheProcessThatStartedIt) {
  Pipe pipe;
  const pid_t starter = fork();
  if (starter == 0) {
    ChildProcessOptions options = Shell("echo up >&2; exec sleep 1000");
    options.stderr_fd = pipe.write_end.get();
    auto process = ChildProcess::Start(options);
    pause();
    _exit(process.ok() ? 0 : 1);
  }
  ASSERT_GT(starter, 0);
  pipe.write_end = UniqueFd();
  EXPECT_EQ(ReadAll(pipe.read_end.get(), /*enough=*/3), "up\n");
  kill(starter, SIGKILL);
  waitpid(starter, nullptr, 0);
  EXPECT_EQ(ReadAll(pipe.read_end.get()), "");
}

}  // namespace
}  // namespace millrace
