// SPDX-License-Identifier: Apache-2.0
#include "common/base/child_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/log_line.h"
#include "common/base/progress.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kLinesKept = 8;

// The event that a line is, or one that has the line as its message.
std::string EventOf(const std::string& line, const ChildLogOptions& options) {
  const std::string event = line.starts_with("{\"")
                                ? line
                                : LogLine({.time = absl::Now(),
                                           .level = LogLevel::kWarning,
                                           .component = options.component,
                                           .message = line,
                                           .fields = {}},
                                          LogFormat::kJson);
  return StrCat("{", options.members, event.substr(1));
}

}  // namespace

absl::StatusOr<ChildLog> ChildLog::Open(ChildLogOptions options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(StrCat("cannot make a pipe for a log: ",
                                      std::string(std::strerror(errno))));
  }
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  // The child waits when the pipe is full; this side never waits.
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return ChildLog(std::move(options), std::move(read_end),
                  std::move(write_end));
}

void ChildLog::PrintLine(std::string line) {
  const std::string text =
      CurrentLogFormat() == LogFormat::kJson
          ? StrCat(EventOf(line, options_), "\n")
          : StrCat(EraseLine(), options_.prefix, line, "\n");
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
}

void ChildLog::Forward() {
  char buffer[4096];
  while (read_end_.get() >= 0) {
    const ssize_t got = read(read_end_.get(), buffer, sizeof(buffer));
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
  read_end_ = UniqueFd();
}

}  // namespace millrace
