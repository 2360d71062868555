// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/log.h"

namespace millrace {

// Standard output for a text that changes: each one replaces the one before if
// that is a terminal, else is appended. A terminal shows it on a screen of its
// own, which disappears with this object; meanwhile, nothing is logged to it.
// Threads: one; others may log.
class StatusScreen {
 public:
  StatusScreen();
  ~StatusScreen();
  StatusScreen(const StatusScreen&) = delete;
  StatusScreen& operator=(const StatusScreen&) = delete;

  // Shows `text`, whose lines end with '\n'; a terminal, as much of it as fits.
  // RESOURCE_EXHAUSTED: it cannot be written.
  absl::Status Show(const std::string& text);

 private:
  const bool terminal_;
  const LogLevel log_level_;  // of before
};

}  // namespace millrace
