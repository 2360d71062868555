// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/server_failure.h"

#include <sys/wait.h>

#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/child_process.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "nlohmann/json.hpp"

namespace millrace {
namespace {

constexpr int kWrongUsage = 2;

// Adds what a line of the server's log says of the error that ends it: what
// went wrong, then what to do.
void AddError(const std::string& line, std::vector<std::string>& errors) {
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, "millrace-server: ")) {
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

}  // namespace

absl::Status ServerFailure(const std::string& what, int wait_status,
                           const std::deque<std::string>& last_lines) {
  std::vector<std::string> own;
  for (const std::string& line : last_lines) AddError(line, own);
  std::string message = StrCat(what, " ", DescribeWaitStatus(wait_status));
  if (!own.empty()) {
    message += StrCat(": ", own[0]);
  } else if (!last_lines.empty()) {
    message += StrCat(": ", absl::StrJoin(last_lines, " | "));
  }
  message += StrCat("\n", own.size() > 1 ? own[1] : WhereItsLogIs());
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kWrongUsage
             ? UsageError(message)
             : absl::UnavailableError(message);
}

std::string WhereItsLogIs() {
  return CurrentLogFormat() == LogFormat::kJson
             ? "see its events above, whose component is \"server\""
             : "see its log above, after [server]";
}

}  // namespace millrace
