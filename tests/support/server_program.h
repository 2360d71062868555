// SPDX-License-Identifier: Apache-2.0
// Runs millrace-server as a process. A test that uses this needs
// add_dependencies(TEST millrace-server).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "tests/support/eventually.h"

namespace millrace::testing {

// A server program whose stderr is read through a pipe.
class Program {
 public:
  // `max_files` is its limit on open files; 0 means that of the test.
  explicit Program(std::vector<std::string> arguments, int max_files = 0) {
    arguments.insert(arguments.begin(),
                     std::string(MILLRACE_BIN_DIR) + "/millrace-server");
    int pipe_fds[2];
    EXPECT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe_fds[1], STDERR_FILENO);
      const auto files = static_cast<rlim_t>(max_files);
      const rlimit limit = {files, files};
      if (max_files > 0) setrlimit(RLIMIT_NOFILE, &limit);
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

  // Reads stderr until it contains `text`; false if it ends first, or after 60
  // s.
  bool AwaitLog(const std::string& text) {
    const SteadyTime deadline = SteadyNow() + absl::Seconds(60);
    while (log_.find(text) == std::string::npos) {
      pollfd ready = {errors_, POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(deadline - SteadyNow());
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

  pid_t pid() const { return pid_; }
  void Signal(int signal) { kill(pid_, signal); }
  // Waits until all threads have stopped; sending the signal alone does not.
  void Stop() {
    Signal(SIGSTOP);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }

  // Kills the program, unless it is gone. Returns all that it logged.
  const std::string& KillAndReadLog() {
    Signal(SIGKILL);
    char buffer[4096];
    for (ssize_t count; (count = read(errors_, buffer, sizeof buffer)) > 0;) {
      log_.append(buffer, static_cast<size_t>(count));
    }
    return log_;
  }

  int ExitStatus() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const std::string& log() const { return log_; }
  // The port of --metrics HOST:PORT. Call once the log contains "serving".
  int metrics_port() const {
    const std::string text = "listening for metrics url=http://";
    const size_t start = log_.find(text);
    EXPECT_NE(start, std::string::npos) << log_;
    if (start == std::string::npos) return 0;
    const std::string line = log_.substr(start, log_.find('\n', start) - start);
    return std::stoi(line.substr(line.rfind(':') + 1));
  }

 private:
  pid_t pid_ = -1;
  int errors_ = -1;
  std::string log_;
};

// Starts a server program for `partitions` on a free port, with `more`
// arguments, and returns its address once it is ready. Writes `port_file`.
inline std::string Serve(const std::filesystem::path& store,
                         const std::string& partitions,
                         const std::filesystem::path& port_file,
                         std::unique_ptr<Program>& program,
                         const std::vector<std::string>& more = {}) {
  // The server must not log much, because nothing reads its stderr.
  std::vector<std::string> arguments = {
      "--store",     store.string(), "--partition", partitions,
      "--listen",    "127.0.0.1:0",  "--port-file", port_file.string(),
      "--log-level", "error"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  program = std::make_unique<Program>(std::move(arguments));
  std::string port;
  EXPECT_TRUE(Eventually([&] {
    return static_cast<bool>(std::ifstream(port_file) >> port);
  })) << "no server after a minute";
  return "127.0.0.1:" + port;
}

}  // namespace millrace::testing
