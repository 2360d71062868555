// SPDX-License-Identifier: Apache-2.0
#include "common/base/log_line.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/json_line.h"
#include "common/base/printable.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kRequestId = "request_id";

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return "error";
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// What happened, and what to do (empty if the message does not say).
std::pair<std::string, std::string> Parts(const std::string& message) {
  const size_t end = message.find('\n');
  if (end == message.npos) return {message, ""};
  return {message.substr(0, end), message.substr(end + 1)};
}

bool IsPlain(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '=') return false;
  }
  return true;
}

std::string ValueText(const LogValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          if (IsPlain(held)) return held;
          return absl::StrCat("\"",
                              Printable(absl::StrReplaceAll(
                                  held, {{"\\", "\\\\"}, {"\"", "\\\""}})),
                              "\"");
        } else if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else {
          return absl::StrCat(held);
        }
      },
      value.value());
}

void AppendField(std::string_view name, const LogValue& value,
                 std::string& text) {
  absl::StrAppend(&text, text.empty() ? "" : " ", AbslView(name), "=",
                  ValueText(value));
}

std::string EventJson(const LogEvent& event) {
  nlohmann::ordered_json line;
  const auto [what, advice] = Parts(event.message);
  line["time"] = TimeText(event.time);
  line["level"] = LevelName(event.level);
  line["component"] = ComponentName(event.component);
  line["message"] = what;
  if (!advice.empty()) line["advice"] = advice;
  if (event.request_id != nullptr)
    line[std::string(kRequestId)] = *event.request_id;
  for (const LogField& field : event.fields) {
    std::visit([&](const auto& held) { line[field.name] = held; },
               field.value.value());
  }
  return JsonLine(line);
}

}  // namespace

std::string LogText(const LogEvent& event) {
  const auto [what, advice] = Parts(event.message);
  std::string text =
      Printable(advice.empty() ? what : absl::StrCat(what, "; ", advice));
  if (event.request_id != nullptr) {
    AppendField(kRequestId, *event.request_id, text);
  }
  for (const LogField& field : event.fields) {
    AppendField(field.name, field.value, text);
  }
  return text;
}

std::string LogLine(const LogEvent& event, LogFormat format) {
  if (format == LogFormat::kJson) return EventJson(event);
  return StrCat(TimeText(event.time), " ", std::string(LevelName(event.level)),
                " ", std::string(ComponentName(event.component)), " ",
                LogText(event));
}

}  // namespace millrace
