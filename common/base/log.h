// SPDX-License-Identifier: Apache-2.0
// The program's log, on stderr: one line for each event. May be included
// together with LibTorch's headers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace millrace {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// What an event is about.
enum class LogComponent {
  kCli,     // everything else that a program does
  kServer,  // a server's life, its connections and the calls to it
  kFleet,   // which servers there are
  kTls,     // certificates and refused clients
  kScrub,   // damaged files
  kStore,   // where a store is kept
  kLoader,  // batches that a client fetches
  kTrain,   // training
};
// "cli", "server", ...
std::string_view ComponentName(LogComponent component);

// The value of a field: a text, a number or a truth value.
class LogValue {
 public:
  LogValue(const char* text) : value_(std::string(text)) {}
  LogValue(std::string text) : value_(std::move(text)) {}
  LogValue(std::string_view text) : value_(std::string(text)) {}
  template <typename Number,
            typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  LogValue(Number number) : value_(Widened(number)) {}

  using Variant = std::variant<std::string, bool, int64_t, uint64_t, double>;
  const Variant& value() const { return value_; }

 private:
  template <typename Number>
  static Variant Widened(Number number) {
    if constexpr (std::is_same_v<Number, bool>) {
      return number;
    } else if constexpr (std::is_floating_point_v<Number>) {
      return static_cast<double>(number);
    } else if constexpr (std::is_signed_v<Number>) {
      return static_cast<int64_t>(number);
    } else {
      return static_cast<uint64_t>(number);
    }
  }

  Variant value_;
};

struct LogField {
  std::string name;  // letters, digits and '_', such as "request_id"
  LogValue value;
};
using LogFields = std::vector<LogField>;

// The values of fields like "total_ms" and "seconds", rounded down to 10
// microseconds and to a millisecond.
double LogMilliseconds(absl::Duration time);
double LogSeconds(absl::Duration time);

// Write one event: LogInfo(LogComponent::kServer, "serving", {{"partitions",
// "0,2"}}). The first line feed in `message` separates what happened from what
// to do; anything else that cannot be shown is escaped. Without a component, it
// is the program's own. Any thread may call them.
void LogDebug(LogComponent component, const std::string& message,
              const LogFields& fields = {});
void LogInfo(LogComponent component, const std::string& message,
             const LogFields& fields = {});
void LogWarning(LogComponent component, const std::string& message,
                const LogFields& fields = {});
void LogError(LogComponent component, const std::string& message,
              const LogFields& fields = {});
void LogInfo(const std::string& message, const LogFields& fields = {});
void LogWarning(const std::string& message, const LogFields& fields = {});

// Whether events of this level are logged; for events that are costly to make.
bool IsLogged(LogLevel level);

// While it lives, the events that its thread logs have the field "request_id".
// `id` must outlive it. They may be nested.
class LogRequest {
 public:
  explicit LogRequest(const std::string& id);
  ~LogRequest();
  LogRequest(const LogRequest&) = delete;
  LogRequest& operator=(const LogRequest&) = delete;

 private:
  const std::string* const before_;
};

// Sends the log to stderr. `own` is the component of events that name none.
// Not thread-safe: to be called before other threads log.
void SetUpLog(LogComponent own);
// Any thread may call these, while others log.
void SetLogLevel(LogLevel level);
LogLevel CurrentLogLevel();
void SetLogFormat(LogFormat format);
LogFormat CurrentLogFormat();
LogComponent OwnComponent();

}  // namespace millrace
