// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/colocated_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "client/train/main/ready_file.h"
#include "client/train/main/server_failure.h"
#include "common/base/child_log.h"
#include "common/base/child_process.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/unique_fd.h"

namespace millrace {
namespace {

constexpr char kServerProgram[] = "millrace-server";
constexpr char kDrainTimeout[] = "5s";
constexpr absl::Duration kStopLimit = absl::Seconds(10);
// How often to look for the file that says that the server is ready, and for
// interrupts.
constexpr absl::Duration kReadyInterval = absl::Milliseconds(20);
// Pauses before the server is started again: they double, and start anew once
// it has run for longer than the longest.
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(10);
// How often to look whether a killed server has gone.
constexpr absl::Duration kKillInterval = absl::Milliseconds(100);

// A timeout of poll().
int PollTime(absl::Duration time) {
  return static_cast<int>(absl::ToInt64Milliseconds(time));
}

}  // namespace

// What the thread and its owner share.
class ColocatedServer::Keeper {
 public:
  // `stop` is an eventfd.
  Keeper(std::string what, std::vector<std::string> arguments, UniqueFd stop)
      : what_(std::move(what)),
        arguments_(std::move(arguments)),
        stop_(std::move(stop)) {
    thread_ = std::thread([this] { Keep(); });
  }
  ~Keeper() {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Waits for `limit` at most. Returns nullopt if the server is still starting.
  std::optional<absl::Status> WaitForStart(absl::Duration limit) {
    MutexLock lock(&mutex_);
    changed_.WaitFor(&mutex_, limit,
                     [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                       return started_.has_value();
                     });
    return started_;
  }

 private:
  // Runs on the thread.
  void Keep();
  absl::Status Start();
  // Returns how the server ended; nullopt if it was stopped on request.
  std::optional<int> AwaitEnd();
  void Stop();
  bool Pause(absl::Duration pause);
  void SetStarted(absl::Status status);

  const std::string what_;
  const std::vector<std::string> arguments_;
  const UniqueFd stop_;
  sigset_t mask_;  // of the server

  // Of the thread alone.
  std::optional<ChildProcess> process_;
  std::optional<ChildLog> log_;  // the server's
  ReadyFile ready_file_;
  bool ready_ = false;

  Mutex mutex_;
  CondVar changed_;
  // Once the server has been ready, or has failed to become so.
  std::optional<absl::Status> started_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all of the above
};

void ColocatedServer::Keeper::SetStarted(absl::Status status) {
  MutexLock lock(&mutex_);
  if (!started_.has_value()) started_ = std::move(status);
  changed_.NotifyAll();
}

absl::Status ColocatedServer::Keeper::Start() {
  const std::filesystem::path program = PathBesideThisProgram(kServerProgram);
  std::error_code error;
  if (!std::filesystem::exists(program, error)) {
    return absl::NotFoundError(
        StrCat(program.string(), " does not exist\nbuild or install ",
               kServerProgram, " beside millrace-train"));
  }
  MILLRACE_RETURN_IF_ERROR(ready_file_.MakeFolder());
  MILLRACE_ASSIGN_OR_RETURN(
      log_, ChildLog::Open(
                {.prefix = "[server] ", .component = LogComponent::kServer}));
  ChildProcessOptions options;
  options.arguments = {program};
  options.arguments.insert(options.arguments.end(), arguments_.begin(),
                           arguments_.end());
  options.arguments.insert(
      options.arguments.end(),
      {"--port-file", ready_file_.path(), "--drain-timeout", kDrainTimeout});
  // They are the trainer's options.
  options.hidden_prefix = "MILLRACE_";
  if (CurrentLogFormat() == LogFormat::kJson) {
    options.environment = {{"MILLRACE_LOG_FORMAT", "json"}};
  }
  options.stderr_fd = log_->write_end();
  options.signal_mask = mask_;
  ready_ = false;
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  process_.emplace(std::move(process));
  log_->CloseWriteEnd();
  return absl::OkStatus();
}

void ColocatedServer::Keeper::Stop() {
  process_->Signal(SIGTERM);
  process_->Signal(SIGCONT);  // or a stopped process would not receive it
  const SteadyTime kill_at = SteadyNow() + kStopLimit;
  bool killed = false;
  while (process_->running()) {
    pollfd fds[] = {{process_->end_fd(), POLLIN, 0}, {log_->fd(), POLLIN, 0}};
    poll(fds, 2, PollTime(std::max(kill_at - SteadyNow(), kKillInterval)));
    log_->Forward();
    if (!killed && SteadyNow() >= kill_at) {
      process_->Signal(SIGKILL);
      killed = true;
    }
    process_->TryWait();
  }
}

std::optional<int> ColocatedServer::Keeper::AwaitEnd() {
  while (true) {
    pollfd fds[] = {{stop_.get(), POLLIN, 0},
                    {process_->end_fd(), POLLIN, 0},
                    {log_->fd(), POLLIN, 0}};
    poll(fds, 3, ready_ ? -1 : PollTime(kReadyInterval));
    log_->Forward();
    if (fds[0].revents != 0) {
      Stop();
      return std::nullopt;
    }
    if (!ready_ && ready_file_.exists()) {
      ready_ = true;
      ready_file_.Remove();
      SetStarted(absl::OkStatus());
    }
    const std::optional<int> status = process_->TryWait();
    if (!status.has_value()) continue;
    log_->Forward();
    return status;
  }
}

// Returns whether to go on.
bool ColocatedServer::Keeper::Pause(absl::Duration pause) {
  pollfd stop{stop_.get(), POLLIN, 0};
  poll(&stop, 1, PollTime(pause));
  return stop.revents == 0 && !Interrupted();
}

void ColocatedServer::Keeper::Keep() {
  // The signals are for other threads. The server starts without blocked ones.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  sigemptyset(&mask_);
  absl::Duration pause = kFirstPause;
  while (true) {
    const SteadyTime start = SteadyNow();
    absl::Status failure = Start();
    if (failure.ok()) {
      const std::optional<int> status = AwaitEnd();
      process_.reset();
      if (!status.has_value()) return;
      failure = ServerFailure(what_, *status, log_->last_lines());
    }
    SetStarted(failure);
    {
      MutexLock lock(&mutex_);
      if (!started_->ok()) return;
    }
    if (Interrupted()) return;
    if (SteadyNow() - start > kLongestPause) pause = kFirstPause;
    LogWarning("the server has ended and is started again",
               {{"pause", absl::FormatDuration(pause)},
                {"error", FirstLine(failure)}});
    if (!Pause(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::StatusOr<std::unique_ptr<ColocatedServer>> ColocatedServer::Start(
    const std::string& what, std::vector<std::string> arguments) {
  UniqueFd stop(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (stop.get() < 0) {
    return absl::InternalError(
        StrCat(what, " cannot be started: eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<ColocatedServer>(new ColocatedServer(
      what,
      std::make_unique<Keeper>(what, std::move(arguments), std::move(stop))));
}

ColocatedServer::ColocatedServer(std::string what,
                                 std::unique_ptr<Keeper> keeper)
    : what_(std::move(what)), keeper_(std::move(keeper)) {}

ColocatedServer::~ColocatedServer() = default;

absl::Status ColocatedServer::WaitUntilReady(absl::Duration limit) {
  const SteadyTime deadline = SteadyNow() + limit;
  while (true) {
    const std::optional<absl::Status> started =
        keeper_->WaitForStart(absl::Milliseconds(100));
    if (started.has_value()) return *started;
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(StrCat(what_, " is not ready after ",
                                                absl::FormatDuration(limit),
                                                "\n", WhereItsLogIs(),
                                                ", or wait longer with "
                                                "--partition-wait"));
    }
  }
}

}  // namespace millrace
