// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/log_line.h"
#include "common/base/progress.h"

namespace millrace {
namespace {

std::atomic<LogFormat> log_format = LogFormat::kText;
std::atomic<LogComponent> own_component = LogComponent::kCli;

thread_local const std::string* current_request = nullptr;
// The event that this thread is logging; null for lines that libraries log by
// spdlog.
thread_local const LogEvent* current_event = nullptr;

// Makes an event the current one while it is logged, even if that fails.
class CurrentEvent {
 public:
  explicit CurrentEvent(const LogEvent& event) { current_event = &event; }
  ~CurrentEvent() { current_event = nullptr; }
  CurrentEvent(const CurrentEvent&) = delete;
  CurrentEvent& operator=(const CurrentEvent&) = delete;
};

// The name of the logger that SetUpLog() makes, whose LineFormatter lays out
// the current event. A program that uses this library may log in another way.
constexpr char kOwnLogger[] = "millrace";

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

LogLevel FromSpdlog(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::kDebug;
  if (level == spdlog::level::info) return LogLevel::kInfo;
  if (level == spdlog::level::warn) return LogLevel::kWarning;
  return level >= spdlog::level::off ? LogLevel::kOff : LogLevel::kError;
}

class LineFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message,
              spdlog::memory_buf_t& out) override {
    if (current_event != nullptr) return Append(*current_event, message, out);
    const std::string text(message.payload.data(), message.payload.size());
    Append({.time = absl::FromChrono(message.time),
            .level = FromSpdlog(message.level),
            .component = own_component,
            .message = text,
            .fields = {}},
           message, out);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>();
  }

 private:
  static void Append(const LogEvent& event,
                     const spdlog::details::log_msg& message,
                     spdlog::memory_buf_t& out) {
    const LogFormat format = log_format;
    std::string line = LogLine(event, format);
    // A log line replaces the progress bar, if one is shown.
    const std::string erase = format == LogFormat::kText ? EraseLine() : "";
    if (format == LogFormat::kText) {
      // The level is coloured.
      message.color_range_start = erase.size() + line.find(' ') + 1;
      message.color_range_end =
          erase.size() + line.find(' ', line.find(' ') + 1);
    }
    line += '\n';
    out.append(erase.data(), erase.data() + erase.size());
    out.append(line.data(), line.data() + line.size());
  }
};

void Log(LogLevel level, LogComponent component, const std::string& message,
         const LogFields& fields) {
  if (!IsLogged(level)) return;
  const LogEvent event = {.time = absl::Now(),
                          .level = level,
                          .component = component,
                          .message = message,
                          .fields = fields,
                          .request_id = current_request};
  const CurrentEvent current(event);
  const bool own = spdlog::default_logger_raw()->name() == kOwnLogger;
  const std::string text = own ? "" : LogText(event);
  spdlog::log(ToSpdlog(level), "{}", own ? message : text);
}

}  // namespace

std::string_view ComponentName(LogComponent component) {
  constexpr std::string_view kNames[] = {"cli",   "server", "fleet",  "tls",
                                         "scrub", "store",  "loader", "train"};
  return kNames[static_cast<size_t>(component)];
}

double LogMilliseconds(absl::Duration time) {
  return absl::ToDoubleMilliseconds(absl::Trunc(time, absl::Microseconds(10)));
}

double LogSeconds(absl::Duration time) {
  return absl::ToDoubleSeconds(absl::Trunc(time, absl::Milliseconds(1)));
}

void LogDebug(LogComponent component, const std::string& message,
              const LogFields& fields) {
  Log(LogLevel::kDebug, component, message, fields);
}

void LogInfo(LogComponent component, const std::string& message,
             const LogFields& fields) {
  Log(LogLevel::kInfo, component, message, fields);
}

void LogWarning(LogComponent component, const std::string& message,
                const LogFields& fields) {
  Log(LogLevel::kWarning, component, message, fields);
}

void LogError(LogComponent component, const std::string& message,
              const LogFields& fields) {
  Log(LogLevel::kError, component, message, fields);
}

void LogInfo(const std::string& message, const LogFields& fields) {
  Log(LogLevel::kInfo, own_component, message, fields);
}

void LogWarning(const std::string& message, const LogFields& fields) {
  Log(LogLevel::kWarning, own_component, message, fields);
}

bool IsLogged(LogLevel level) {
  return spdlog::default_logger_raw()->should_log(ToSpdlog(level));
}

LogRequest::LogRequest(const std::string& id) : before_(current_request) {
  current_request = &id;
}

LogRequest::~LogRequest() { current_request = before_; }

void SetUpLog(LogComponent own) {
  own_component = own;
  auto logger = std::make_shared<spdlog::logger>(
      kOwnLogger, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_formatter(std::make_unique<LineFormatter>());
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

void SetLogLevel(LogLevel level) { spdlog::set_level(ToSpdlog(level)); }

LogLevel CurrentLogLevel() {
  return FromSpdlog(spdlog::default_logger_raw()->level());
}

void SetLogFormat(LogFormat format) { log_format = format; }

LogFormat CurrentLogFormat() { return log_format; }

LogComponent OwnComponent() { return own_component; }

}  // namespace millrace
