// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/launcher.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client/train/group/message_signer.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

// The least memory a rank takes, besides the code that all share.
constexpr int64_t kWorkerBytes = 50 << 20;

constexpr char kLauncherVariable[] = "MILLRACE_LAUNCHER_PID";
// Other users cannot read the environment of a process.
constexpr char kSecretVariable[] = "MILLRACE_LAUNCHER_SECRET";

// This program's file; by its own name, so that ps and pkill show it.
std::string Program() {
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

// A rank that was asked to end may take this long to unwind; less after a
// failure, when it may hang in a collective.
constexpr absl::Duration kUnwind = absl::Seconds(10);
constexpr absl::Duration kUnwindAfterFailure = absl::Seconds(3);

// What a rank ends with that was started with wrong options (ExitStatus).
constexpr int kWrongUsage = 2;

struct Worker {
  pid_t pid = -1;
  UniqueFd pid_fd;      // readable once the process has ended
  UniqueFd log;         // read end of its stderr; none for rank 0
  std::string partial;  // the start of a line of the log
  bool running = false;
};

absl::Status SystemError(const char* call) {
  return absl::InternalError(StrCat(call, ": ", std::strerror(errno)));
}

absl::StatusOr<uint16_t> FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd.get() < 0 || bind(fd.get(), generic, length) != 0 ||
      getsockname(fd.get(), generic, &length) != 0) {
    return SystemError("finding a free port");
  }
  return ntohs(address.sin_port);
}

// Our environment with `overrides` in place of equal names.
std::vector<std::string> Environment(
    const std::map<std::string, std::string>& overrides) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!overrides.contains(text.substr(0, text.find('=')))) {
      variables.push_back(text);
    }
  }
  for (const auto& [name, value] : overrides) {
    variables.push_back(StrCat(name, "=", value));
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Own process group: Ctrl-C in a terminal reaches the launcher alone, which
// passes it on once. Default signal mask: ours is blocked.
class SpawnSettings {
 public:
  explicit SpawnSettings(int log_write_end) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    if (log_write_end >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, log_write_end, STDERR_FILENO);
    }
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawnattr_t* attributes() const { return &attributes_; }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

class Launcher {
 public:
  Launcher(char** argv, int workers, int threads)
      : argv_(argv), threads_(threads), workers_(workers) {}
  ~Launcher() { EndAll(); }

  absl::Status Run();

 private:
  absl::Status Start(int rank, uint16_t port);
  absl::Status WaitForAll();
  void PollOnce(const sigset_t& while_waiting);
  void ForwardLog(int rank);
  void PrintLine(int rank, const std::string& line);
  // Collects a rank that has ended.
  void Reap(int rank);
  void SignalAll(int signal);
  void EndAll();
  bool AnyRunning() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.running; });
  }

  char** const argv_;
  const int threads_;
  const std::string secret_ = absl::BytesToHexString(RandomBytes(32));
  std::vector<Worker> workers_;
  absl::Status failure_;  // the first rank that failed
  SteadyTime kill_at_ = SteadyTime::InfiniteFuture();
};

absl::Status Launcher::Start(int rank, uint16_t port) {
  Worker& worker = workers_[rank];
  UniqueFd write_end;
  if (rank > 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2");
    worker.log = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  std::vector<std::string> environment =
      Environment({{"RANK", absl::StrCat(rank)},
                   {"LOCAL_RANK", absl::StrCat(rank)},
                   {"WORLD_SIZE", absl::StrCat(workers_.size())},
                   {"LOCAL_WORLD_SIZE", absl::StrCat(workers_.size())},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", absl::StrCat(port)},
                   {"TORCHELASTIC_USE_AGENT_STORE", ""},
                   {"OMP_NUM_THREADS", absl::StrCat(threads_)},
                   {"OMP_WAIT_POLICY", "PASSIVE"},
                   {kLauncherVariable, absl::StrCat(getpid())},
                   {kSecretVariable, secret_}});
  const SpawnSettings settings(write_end.get());
  const int error =
      posix_spawn(&worker.pid, Program().c_str(), settings.actions(),
                  settings.attributes(), argv_, Pointers(environment).data());
  if (error != 0) {
    errno = error;
    return SystemError("starting a trainer process");
  }
  worker.running = true;
  worker.pid_fd = UniqueFd(
      static_cast<int>(syscall(SYS_pidfd_open, worker.pid, /*flags=*/0)));
  if (worker.pid_fd.get() < 0) return SystemError("pidfd_open");
  return absl::OkStatus();
}

void Launcher::PrintLine(int rank, const std::string& line) {
  const std::string text =
      StrCat(EraseLine(), "[rank ", rank, "] ", line, "\n");
  // One write, so that lines of several ranks do not mix.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
}

void Launcher::ForwardLog(int rank) {
  Worker& worker = workers_[rank];
  char buffer[4096];
  while (true) {
    const ssize_t got = read(worker.log.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) break;
    worker.partial.append(buffer, static_cast<size_t>(got));
    size_t end;
    while ((end = worker.partial.find('\n')) != std::string::npos) {
      PrintLine(rank, worker.partial.substr(0, end));
      worker.partial.erase(0, end + 1);
    }
  }
  if (!worker.partial.empty()) PrintLine(rank, worker.partial);
  worker.partial.clear();
  worker.log = UniqueFd();
}

void Launcher::Reap(int rank) {
  Worker& worker = workers_[rank];
  int status = 0;
  if (waitpid(worker.pid, &status, WNOHANG) != worker.pid) return;
  worker.running = false;
  if (worker.log.get() >= 0) ForwardLog(rank);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  // Wrong usage takes precedence over the failures of ranks that ended earlier
  // because of it, so that a supervisor does not start the group again.
  const bool wrong_usage =
      WIFEXITED(status) && WEXITSTATUS(status) == kWrongUsage;
  if (failure_.ok() || (wrong_usage && !absl::IsInvalidArgument(failure_))) {
    const std::string how =
        WIFSIGNALED(status) ? StrCat("was killed by signal ", WTERMSIG(status),
                                     " (", strsignal(WTERMSIG(status)), ")")
                            : StrCat("ended with status ", WEXITSTATUS(status));
    const std::string what = StrCat("rank ", rank, " of ", workers_.size(), " ",
                                    how, "; the other ranks were ended\n");
    failure_ =
        wrong_usage
            ? UsageError(StrCat("--workers: ", what,
                                "correct what its own message names"))
            : absl::UnavailableError(StrCat(
                  what,
                  "its own message stands above; start again with --resume to "
                  "go on from the last checkpoint"));
    SignalAll(SIGTERM);
    // A stopped process takes SIGTERM only when it runs again.
    SignalAll(SIGCONT);
    kill_at_ = SteadyNow() + kUnwindAfterFailure;
  }
}

void Launcher::SignalAll(int signal) {
  for (Worker& worker : workers_) {
    if (worker.running) kill(worker.pid, signal);
  }
}

void Launcher::PollOnce(const sigset_t& while_waiting) {
  std::vector<pollfd> fds;
  std::vector<int> ranks;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    const Worker& worker = workers_[rank];
    if (worker.running) {
      fds.push_back({worker.pid_fd.get(), POLLIN, 0});
      ranks.push_back(static_cast<int>(rank));
    }
    if (worker.log.get() >= 0) {
      fds.push_back({worker.log.get(), POLLIN, 0});
      ranks.push_back(static_cast<int>(rank));
    }
  }
  timespec wait{};
  const bool bounded = kill_at_ != SteadyTime::InfiniteFuture();
  if (bounded) {
    wait = absl::ToTimespec(
        std::max(absl::ZeroDuration(), kill_at_ - SteadyNow()));
  }
  // Signals arrive only here, so none is missed between look and wait.
  if (ppoll(fds.data(), fds.size(), bounded ? &wait : nullptr, &while_waiting) <
      0) {
    return;
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    if (fds[i].fd == workers_[ranks[i]].log.get()) {
      ForwardLog(ranks[i]);
    } else {
      Reap(ranks[i]);
    }
  }
}

absl::Status Launcher::WaitForAll() {
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigprocmask(SIG_BLOCK, &ours, &before);
  bool passed_on = false;
  while (AnyRunning()) {
    // First, for a signal that came while the workers were being started.
    if (Interrupted() && !passed_on) {
      passed_on = true;
      SignalAll(SIGTERM);
      kill_at_ = SteadyNow() + kUnwind;
    }
    PollOnce(before);
    if (SteadyNow() >= kill_at_) {
      SignalAll(SIGKILL);
      kill_at_ = SteadyTime::InfiniteFuture();
    }
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  return failure_;
}

absl::Status Launcher::Run() {
  MILLRACE_ASSIGN_OR_RETURN(const uint16_t port, FreePort());
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    MILLRACE_RETURN_IF_ERROR(Start(static_cast<int>(rank), port));
  }
  return WaitForAll();
}

void Launcher::EndAll() {
  SignalAll(SIGKILL);
  for (Worker& worker : workers_) {
    if (worker.running) waitpid(worker.pid, nullptr, 0);
    worker.running = false;
  }
}

}  // namespace

absl::Status RunWorkers(char** argv, int workers, int threads) {
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(StrCat("--workers ", workers),
                  MemoryNeed{.process = kWorkerBytes,
                             .host = SaturatedProduct({workers, kWorkerBytes})},
                  "use fewer workers, or several hosts"));
  if (threads <= 0) {
    const auto cores = static_cast<int>(std::thread::hardware_concurrency());
    threads = std::max(1, cores / workers);
  }
  return Launcher(argv, workers, threads).Run();
}

bool IsWorker() {
  const char* text = std::getenv(kLauncherVariable);
  int launcher = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &launcher)) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The launcher may have died before the line above; and the variable may
  // have come down from a worker to a program that it started.
  if (getppid() == launcher) return true;
  if (kill(launcher, 0) == 0) return false;
  _exit(1);
}

std::string LauncherSecret() {
  const char* secret = std::getenv(kSecretVariable);
  return secret == nullptr ? "" : secret;
}

void EnsurePassiveThreads(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv(Program().c_str(), argv);
  // Without the change the program still runs, only slower.
}

}  // namespace millrace
