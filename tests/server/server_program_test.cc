// SPDX-License-Identifier: Apache-2.0
// The millrace-server program: start, port file, SIGTERM, exit status.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

// A server program whose stderr is read through a pipe.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     std::string(MILLRACE_BIN_DIR) + "/millrace-server");
    int pipe_fds[2];
    EXPECT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe_fds[1], STDERR_FILENO);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(pipe_fds[1]);
    errors_ = pipe_fds[0];
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(errors_);
  }

  // Reads stderr until it holds `text`; false at its end or after 60 s.
  bool AwaitLog(const std::string& text) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (log_.find(text) == std::string::npos) {
      pollfd ready = {errors_, POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) {
        return false;
      }
      char buffer[4096];
      const ssize_t count = read(errors_, buffer, sizeof buffer);
      if (count <= 0) return false;
      log_.append(buffer, static_cast<size_t>(count));
    }
    return true;
  }

  void Signal(int signal) { kill(pid_, signal); }

  int ExitStatus() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const std::string& log() const { return log_; }

 private:
  pid_t pid_ = -1;
  int errors_ = -1;
  std::string log_;
};

class ServerProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TestDirectory("server_program");
    const auto graph = testing::SmallGraph();
    ASSERT_TRUE(testing::BuildStore(graph, 2,
                                    testing::SpreadAssignment(graph, 2),
                                    directory_ / "store")
                    .ok());
  }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "--store",     (directory_ / "store").string(),
        "--listen",    "127.0.0.1:0",
        "--port-file", (directory_ / "port").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::filesystem::path directory_;
};

TEST_F(ServerProgramTest, ServesUntilSigtermAndExitsWithZero) {
  Program server(Arguments({"--partition", "0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions [0] of 2 on 127.0.0.1:"))
      << server.log();
  int port = 0;
  std::ifstream(directory_ / "port") >> port;
  EXPECT_GT(port, 0);
  EXPECT_NE(server.log().find(":" + std::to_string(port)), std::string::npos);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, ServesAllPartitionsFromMemory) {
  Program server(Arguments({"--partition", "all", "--graph-memory", "ram",
                            "--feature-memory", "ram", "--verify-on-start",
                            "--metrics", "127.0.0.1:0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions [0,1] of 2")) << server.log();
  server.Signal(SIGINT);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, RefusesWhatItCannotServe) {
  const auto status = [this](std::vector<std::string> more) {
    Program server(Arguments(std::move(more)));
    server.AwaitLog("no such text");
    return server.ExitStatus();
  };
  EXPECT_EQ(status({"--partition", "2"}), 1);
  EXPECT_EQ(status({"--partition", "x"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--graph-memory", "cuda"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--peers", "nobody"}), 2);
  EXPECT_EQ(status({"--partition", "0", "--drain-timeout", "soon"}), 2);
  EXPECT_EQ(status({}), 2);
}

}  // namespace
}  // namespace millrace
