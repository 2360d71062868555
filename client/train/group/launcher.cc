// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/launcher.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/train/group/message_signer.h"
#include "common/base/child_process.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/log_line.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/unique_fd.h"

namespace millrace {
namespace {

// Minimum memory of a rank, not counting the code that all share.
constexpr int64_t kWorkerBytes = 50 << 20;

constexpr char kNcclInterface[] = "NCCL_SOCKET_IFNAME";
constexpr char kLauncherVariable[] = "MILLRACE_LAUNCHER_PID";
// Other users cannot read the environment of a process.
constexpr char kSecretVariable[] = "MILLRACE_LAUNCHER_SECRET";

// Returns the real path of this program, so that ps shows its name.
std::string Program() {
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

// How long a rank that was asked to end may take; less after a failure, since
// it may hang in a collective.
constexpr absl::Duration kUnwind = absl::Seconds(10);
constexpr absl::Duration kUnwindAfterFailure = absl::Seconds(3);

// Exit status of a rank that was started with wrong options; see ExitStatus.
constexpr int kWrongUsage = 2;

struct Worker {
  ChildProcess process;
  UniqueFd log;              // read end of its stderr; not used for rank 0
  std::string partial = "";  // start of an incomplete line of the log
};

absl::StatusOr<uint16_t> FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd.get() < 0 || bind(fd.get(), generic, length) != 0 ||
      getsockname(fd.get(), generic, &length) != 0) {
    return absl::InternalError(
        StrCat("cannot find a free port: ", std::strerror(errno)));
  }
  return ntohs(address.sin_port);
}

// The event that a rank logged, with its rank; other lines, of libraries,
// become events.
std::string JsonOfRank(int rank, const std::string& line) {
  if (line.starts_with("{\"")) {
    return StrCat("{\"rank\":", rank, ",", line.substr(1), "\n");
  }
  return StrCat(LogLine({.time = absl::Now(),
                         .level = LogLevel::kWarning,
                         .component = LogComponent::kTrain,
                         .message = line,
                         .fields = {{"rank", rank}}},
                        LogFormat::kJson),
                "\n");
}

class Launcher {
 public:
  Launcher(char** argv, int workers, int threads)
      : count_(workers), threads_(threads), arguments_{Program()} {
    for (char** next = argv + 1; *next != nullptr; ++next) {
      arguments_.emplace_back(*next);
    }
  }

  absl::Status Run();

 private:
  absl::Status Start(int rank, uint16_t port);
  absl::Status WaitForAll();
  void PollOnce(const sigset_t& while_waiting);
  void ForwardLog(int rank);
  void PrintLine(int rank, const std::string& line);
  void Reap(int rank);
  void SignalAll(int signal);
  bool AnyRunning() const {
    return std::any_of(
        workers_.begin(), workers_.end(),
        [](const Worker& worker) { return worker.process.running(); });
  }

  const int count_;
  const int threads_;
  std::vector<std::string> arguments_;  // of every worker
  const std::string secret_ = absl::BytesToHexString(RandomBytes(32));
  std::vector<Worker> workers_;
  absl::Status failure_;  // the first rank that failed
  SteadyTime kill_at_ = SteadyTime::InfiniteFuture();
};

absl::Status Launcher::Start(int rank, uint16_t port) {
  UniqueFd log, write_end;
  if (rank > 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::InternalError(
          StrCat("cannot make a pipe: ", std::strerror(errno)));
    }
    log = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ChildProcessOptions options;
  options.arguments = arguments_;
  options.environment = {{"RANK", absl::StrCat(rank)},
                         {"LOCAL_RANK", absl::StrCat(rank)},
                         {"WORLD_SIZE", absl::StrCat(count_)},
                         {"LOCAL_WORLD_SIZE", absl::StrCat(count_)},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", absl::StrCat(port)},
                         {"TORCHELASTIC_USE_AGENT_STORE", ""},
                         {"OMP_NUM_THREADS", absl::StrCat(threads_)},
                         {"OMP_WAIT_POLICY", "PASSIVE"},
                         {kLauncherVariable, absl::StrCat(getpid())},
                         {kSecretVariable, secret_}};
  // NCCL would leave out the loopback interface otherwise.
  if (std::getenv(kNcclInterface) == nullptr) {
    options.environment.emplace(kNcclInterface, "lo");
  }
  options.stderr_fd = write_end.get();
  sigemptyset(&options.signal_mask);  // ours is blocked
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  workers_.push_back({std::move(process), std::move(log)});
  return absl::OkStatus();
}

void Launcher::PrintLine(int rank, const std::string& line) {
  const std::string text =
      CurrentLogFormat() == LogFormat::kJson
          ? JsonOfRank(rank, line)
          : StrCat(EraseLine(), "[rank ", rank, "] ", line, "\n");
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
  const std::optional<int> status = worker.process.TryWait();
  if (!status.has_value()) return;
  if (worker.log.get() >= 0) ForwardLog(rank);
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return;
  // Wrong usage takes precedence over the failures of ranks that ended earlier
  // because of it, so that a supervisor does not start the group again.
  const bool wrong_usage =
      WIFEXITED(*status) && WEXITSTATUS(*status) == kWrongUsage;
  if (failure_.ok() || (wrong_usage && !absl::IsInvalidArgument(failure_))) {
    const std::string what =
        StrCat("rank ", rank, " of ", count_, " ", DescribeWaitStatus(*status),
               "; the other ranks were stopped");
    failure_ =
        wrong_usage
            ? WithAdvice(InvalidField({.field = "workers", .limit = what}),
                         "correct what its own message names")
            : WithReason(absl::UnavailableError(what), Reason{"rank_ended"});
    SignalAll(SIGTERM);
    // A stopped process receives SIGTERM only when it runs again.
    SignalAll(SIGCONT);
    kill_at_ = SteadyNow() + kUnwindAfterFailure;
  }
}

void Launcher::SignalAll(int signal) {
  for (Worker& worker : workers_) worker.process.Signal(signal);
}

void Launcher::PollOnce(const sigset_t& while_waiting) {
  std::vector<pollfd> fds;
  std::vector<int> ranks;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    const Worker& worker = workers_[rank];
    if (worker.process.running()) {
      fds.push_back({worker.process.end_fd(), POLLIN, 0});
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
  // Signals arrive only here, so none is missed between checking and waiting.
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
    // Comes first, for a signal that came while workers were being started.
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
  for (int rank = 0; rank < count_; ++rank) {
    MILLRACE_RETURN_IF_ERROR(Start(rank, port));
  }
  return WaitForAll();
}

}  // namespace

absl::Status RunWorkers(char** argv, int workers, int threads) {
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(StrCat("starting ", workers, " workers"),
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
  // A program that a worker started inherits the variable too.
  return getppid() == launcher;
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
