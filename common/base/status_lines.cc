// SPDX-License-Identifier: Apache-2.0
#include "common/base/status_lines.h"

namespace millrace {

std::string FirstLine(const absl::Status& status) {
  const std::string message(status.message());
  return message.substr(0, message.find('\n'));
}

std::string AdviceOf(const absl::Status& status) {
  const std::string message(status.message());
  const size_t line_end = message.find('\n');
  return line_end == message.npos ? "" : message.substr(line_end);
}

}  // namespace millrace
