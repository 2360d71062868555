// SPDX-License-Identifier: Apache-2.0
#include "common/base/child_process.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr int kCannotExecute = 127;

absl::Status SystemError(const char* call) {
  return absl::InternalError(
      StrCat("cannot start a process: ", call, ": ", std::strerror(errno)));
}

// Our environment with the variables of `options` in place of equal names.
std::vector<std::string> Environment(const ChildProcessOptions& options) {
  const std::string& prefix = options.hidden_prefix;
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool hidden = !prefix.empty() && text.starts_with(prefix);
    if (!hidden &&
        !options.environment.contains(text.substr(0, text.find('=')))) {
      variables.push_back(text);
    }
  }
  for (const auto& [name, value] : options.environment) {
    variables.push_back(StrCat(name, "=", value));
  }
  return variables;
}

// Points into `strings` and ends with a null pointer, as exec() requires.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child between fork() and exec(). Makes only calls that are safe
// in a process whose other threads are gone.
[[noreturn]] void Execute(const ChildProcessOptions& options, pid_t parent,
                          char** arguments, char** environment) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, options.signal_at_our_death);
  if (getppid() != parent) _exit(1);  // the parent died before prctl()
  if (options.stderr_fd >= 0) dup2(options.stderr_fd, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr);
  execve(arguments[0], arguments, environment);
  _exit(kCannotExecute);
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(
    const ChildProcessOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = Environment(options);
  std::vector<char*> argument_pointers = Pointers(arguments);
  std::vector<char*> environment_pointers = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork");
  if (pid == 0) {
    Execute(options, parent, argument_pointers.data(),
            environment_pointers.data());
  }
  UniqueFd end(static_cast<int>(syscall(SYS_pidfd_open, pid, /*flags=*/0)));
  if (end.get() < 0) {
    const absl::Status error = SystemError("pidfd_open");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return error;
  }
  return ChildProcess(pid, std::move(end));
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::TryWait() {
  int status = 0;
  if (!running() || waitpid(pid_, &status, WNOHANG) != pid_) {
    return std::nullopt;
  }
  end_ = UniqueFd();
  return status;
}

void ChildProcess::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

std::filesystem::path PathBesideThisProgram(std::string_view program) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() /
         program;
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return StrCat("was killed by signal ", signal, " (", strsignal(signal),
                  ")");
  }
  return StrCat("ended with status ", WEXITSTATUS(status));
}

}  // namespace millrace
