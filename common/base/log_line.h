// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/log.h"

namespace millrace {

// One event of a log. All references must outlive it.
struct LogEvent {
  absl::Time time;
  LogLevel level;  // not kOff
  LogComponent component;
  const std::string& message;
  const LogFields& fields;
  const std::string* request_id = nullptr;  // null if there is none
};

// The event in one line, without its end:
//   kText: "2026-11-28T18:30:00.123Z info server serving partitions=0,2", with
//     values in double quotes unless they are plain words; '"' and '\' in them
//     have a '\' before them;
//   kJson: an object with "time", "level", "component", "message", the fields,
//     and "advice" if the message says what to do.
std::string LogLine(const LogEvent& event, LogFormat format);

// The part of a text line after the component.
std::string LogText(const LogEvent& event);

}  // namespace millrace
