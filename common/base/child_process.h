// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace millrace {

struct ChildProcessOptions {
  // The path of the program, then its arguments.
  std::vector<std::string> arguments;
  // Variables that replace or extend the environment of this process.
  std::map<std::string, std::string> environment = {};
  // Variables of this process that the child does not get: those whose names
  // start with this. Empty: it gets all of them.
  std::string hidden_prefix = "";
  // Becomes the child's stderr. If negative, the child shares ours.
  int stderr_fd = -1;
  // Signals that are blocked when the child starts.
  sigset_t signal_mask;
  // Sent to the child when the thread that started it ends, however it ends.
  int signal_at_our_death = SIGKILL;
};

// A process that this one has started. It is in a process group of its own:
// Ctrl-C in a terminal reaches only this process, which decides what to do.
// Not thread-safe. Start it on a thread that outlives it.
class ChildProcess {
 public:
  // INTERNAL: the system could not start a process. A program that cannot be
  // executed ends with status 127.
  static absl::StatusOr<ChildProcess> Start(const ChildProcessOptions& options);
  ChildProcess(ChildProcess&& other) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) = delete;
  // Kills the process with SIGKILL if it is still running, and waits for it.
  ~ChildProcess();

  // True until TryWait() has returned the status.
  bool running() const { return end_.get() >= 0; }
  // A descriptor that is readable once the process has ended; owned by this
  // object.
  int end_fd() const { return end_.get(); }
  // Returns the status that waitpid() gives once the process has ended, and
  // only the first time; otherwise nullopt.
  std::optional<int> TryWait();
  // Does nothing unless the process is running.
  void Signal(int signal);

 private:
  ChildProcess(pid_t pid, UniqueFd end) : pid_(pid), end_(std::move(end)) {}

  pid_t pid_;
  UniqueFd end_;  // a pidfd; closed once the status has been returned
};

// The path that `program` has if it is in the folder of this program.
std::filesystem::path PathBesideThisProgram(std::string_view program);

// "ended with status 1" or "was killed by signal 9 (Killed)".
std::string DescribeWaitStatus(int status);

}  // namespace millrace
