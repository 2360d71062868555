// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/launcher.h"

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
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client/train/group/message_signer.h"
#include "common/base/child_log.h"
#include "common/base/child_process.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/processors.h"
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
  std::optional<ChildLog> log;  // absent if it shares our stderr

  int log_fd() const { return log.has_value() ? log->fd() : -1; }
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
  std::optional<ChildLog> log;
  // In text, rank 0 shows its progress on our terminal.
  if (rank > 0 || CurrentLogFormat() == LogFormat::kJson) {
    MILLRACE_ASSIGN_OR_RETURN(
        log, ChildLog::Open({.prefix = StrCat("[rank ", rank, "] "),
                             .members = StrCat("\"rank\":", rank, ","),
                             .component = LogComponent::kTrain}));
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
  if (log.has_value()) options.stderr_fd = log->write_end();
  sigemptyset(&options.signal_mask);  // ours is blocked
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  if (log.has_value()) log->CloseWriteEnd();
  workers_.push_back({std::move(process), std::move(log)});
  return absl::OkStatus();
}

void Launcher::Reap(int rank) {
  Worker& worker = workers_[rank];
  const std::optional<int> status = worker.process.TryWait();
  if (!status.has_value()) return;
  if (worker.log.has_value()) worker.log->Forward();
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
    if (worker.log_fd() >= 0) {
      fds.push_back({worker.log_fd(), POLLIN, 0});
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
    if (fds[i].fd == workers_[ranks[i]].log_fd()) {
      workers_[ranks[i]].log->Forward();
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
    threads = std::max(1, UsableProcessors() / workers);
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
