// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/colocated_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/child_process.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/log_line.h"
#include "common/base/mutex.h"
#include "common/base/progress.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/unique_fd.h"
#include "nlohmann/json.hpp"

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
constexpr size_t kLinesKept = 8;
constexpr int kWrongUsage = 2;

absl::Status SystemError(const char* call) {
  return absl::InternalError(StrCat(call, ": ", std::strerror(errno)));
}

// A line of the server's log as an event; those of libraries become one.
std::string JsonOf(const std::string& line) {
  if (line.starts_with("{\"")) return line;
  return LogLine({.time = absl::Now(),
                  .level = LogLevel::kWarning,
                  .component = LogComponent::kServer,
                  .message = line,
                  .fields = {}},
                 LogFormat::kJson);
}

// Adds what a line of the server's log says of the error that ends it: what
// went wrong, then what to do.
void AddError(const std::string& line, std::vector<std::string>& errors) {
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, StrCat(kServerProgram, ": "))) {
    errors.emplace_back(text);
    return;
  }
  const auto event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object() || !event.contains("level") ||
      event["level"] != "error") {
    return;
  }
  errors.clear();  // the last one is why it ended
  for (const char* member : {"message", "advice"}) {
    if (event.contains(member) && event[member].is_string()) {
      errors.push_back(event[member]);
    }
  }
}

// A folder for the file with which the server reports that it is ready.
class ReadyFile {
 public:
  ReadyFile() = default;
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;
  ~ReadyFile() { Remove(); }

  absl::Status Make() {
    Remove();
    std::string folder =
        std::filesystem::temp_directory_path() / "millrace-train-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return absl::InternalError(StrCat(folder, ": ", std::strerror(errno)));
    }
    folder_ = folder;
    return absl::OkStatus();
  }
  std::filesystem::path path() const { return folder_ / "port"; }
  bool exists() const {
    std::error_code ignored;
    return std::filesystem::exists(path(), ignored);
  }
  void Remove() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
    folder_.clear();
  }

 private:
  std::filesystem::path folder_;  // empty if there is none
};

}  // namespace

// What the thread and its owner share.
class ColocatedServer::Keeper {
 public:
  Keeper(std::string what, std::vector<std::string> arguments)
      : what_(std::move(what)), arguments_(std::move(arguments)) {
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
  std::optional<int> Stop();
  bool Pause(absl::Duration pause);
  void ForwardLog();
  void PrintLine(std::string line);
  absl::Status FailureOf(int status) const;
  void SetStarted(absl::Status status);

  const std::string what_;
  const std::vector<std::string> arguments_;
  const UniqueFd stop_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  sigset_t mask_;  // of the server

  // Of the thread alone.
  std::optional<ChildProcess> process_;
  UniqueFd log_;         // read end of the server's stderr
  std::string partial_;  // start of an incomplete line of it
  std::deque<std::string> last_lines_;
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
  MILLRACE_RETURN_IF_ERROR(ready_file_.Make());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("pipe");
  log_ = UniqueFd(ends[0]);
  const UniqueFd write_end(ends[1]);
  // The server must wait when the pipe is full.
  fcntl(write_end.get(), F_SETFL, 0);
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
  options.stderr_fd = write_end.get();
  options.signal_mask = mask_;
  ready_ = false;
  partial_.clear();
  last_lines_.clear();
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  process_.emplace(std::move(process));
  return absl::OkStatus();
}

void ColocatedServer::Keeper::PrintLine(std::string line) {
  const std::string text = CurrentLogFormat() == LogFormat::kJson
                               ? StrCat(JsonOf(line), "\n")
                               : StrCat(EraseLine(), "[server] ", line, "\n");
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

void ColocatedServer::Keeper::ForwardLog() {
  char buffer[4096];
  while (log_.get() >= 0) {
    const ssize_t got = read(log_.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) break;
    partial_.append(buffer, static_cast<size_t>(got));
    size_t end;
    while ((end = partial_.find('\n')) != std::string::npos) {
      PrintLine(partial_.substr(0, end));
      partial_.erase(0, end + 1);
    }
  }
  if (!partial_.empty()) PrintLine(std::exchange(partial_, ""));
  log_ = UniqueFd();
}

std::optional<int> ColocatedServer::Keeper::Stop() {
  process_->Signal(SIGTERM);
  process_->Signal(SIGCONT);  // or a stopped process would not receive it
  const SteadyTime kill_at = SteadyNow() + kStopLimit;
  while (process_->running()) {
    pollfd fds[] = {{process_->end_fd(), POLLIN, 0}, {log_.get(), POLLIN, 0}};
    const absl::Duration left =
        std::max(kill_at - SteadyNow(), absl::ZeroDuration());
    poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(left)));
    ForwardLog();
    if (left <= absl::ZeroDuration()) process_->Signal(SIGKILL);
    process_->TryWait();
  }
  return std::nullopt;
}

std::optional<int> ColocatedServer::Keeper::AwaitEnd() {
  while (true) {
    pollfd fds[] = {{stop_.get(), POLLIN, 0},
                    {process_->end_fd(), POLLIN, 0},
                    {log_.get(), POLLIN, 0}};
    poll(fds, 3,
         ready_ ? -1
                : static_cast<int>(absl::ToInt64Milliseconds(kReadyInterval)));
    ForwardLog();
    if (fds[0].revents != 0) return Stop();
    if (!ready_ && ready_file_.exists()) {
      ready_ = true;
      ready_file_.Remove();
      SetStarted(absl::OkStatus());
    }
    const std::optional<int> status = process_->TryWait();
    if (!status.has_value()) continue;
    ForwardLog();
    return status;
  }
}

// Returns whether to go on.
bool ColocatedServer::Keeper::Pause(absl::Duration pause) {
  pollfd stop{stop_.get(), POLLIN, 0};
  poll(&stop, 1, static_cast<int>(absl::ToInt64Milliseconds(pause)));
  return stop.revents == 0 && !Interrupted();
}

absl::Status ColocatedServer::Keeper::FailureOf(int status) const {
  std::vector<std::string> own;
  for (const std::string& line : last_lines_) AddError(line, own);
  std::string message = StrCat(what_, " ", DescribeWaitStatus(status));
  if (!own.empty()) {
    message += StrCat(": ", own[0]);
  } else if (!last_lines_.empty()) {
    message += StrCat(": ", absl::StrJoin(last_lines_, " | "));
  }
  message += own.size() > 1 ? StrCat("\n", own[1])
                            : "\nsee its log above, after [server]";
  return WIFEXITED(status) && WEXITSTATUS(status) == kWrongUsage
             ? UsageError(message)
             : absl::UnavailableError(message);
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
      failure = FailureOf(*status);
    }
    SetStarted(failure);
    {
      MutexLock lock(&mutex_);
      if (!started_->ok()) return;
    }
    if (Interrupted()) return;
    if (SteadyNow() - start > kLongestPause) pause = kFirstPause;
    LogWarning(StrCat(FirstLine(failure), "; starting it again in ",
                      absl::FormatDuration(pause)));
    if (!Pause(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

ColocatedServer::ColocatedServer(std::string what,
                                 std::vector<std::string> arguments)
    : what_(std::move(what)),
      keeper_(std::make_unique<Keeper>(what_, std::move(arguments))) {}

ColocatedServer::~ColocatedServer() = default;

absl::Status ColocatedServer::WaitUntilReady(absl::Duration limit) {
  const SteadyTime deadline = SteadyNow() + limit;
  while (true) {
    const std::optional<absl::Status> started =
        keeper_->WaitForStart(absl::Milliseconds(100));
    if (started.has_value()) return *started;
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(
          StrCat(what_, " is not ready after ", absl::FormatDuration(limit),
                 "\nsee its log above, after [server], or wait longer with "
                 "--partition-wait"));
    }
  }
}

}  // namespace millrace
