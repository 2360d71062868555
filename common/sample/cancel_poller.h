// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace millrace {

// Polls for cancellation about every 2^20 entries of a long piece of work.
// Not thread-safe.
class CancelPoller {
 public:
  // For work that cannot be cancelled.
  CancelPoller() : CancelPoller([] { return absl::OkStatus(); }) {}
  // An error of `check` ends the work.
  explicit CancelPoller(std::function<absl::Status()> check)
      : check_(std::move(check)) {}

  // Counts `entries` more, and calls the check if it is due. Must not be called
  // with more than kEntries unless that work cannot be divided.
  absl::Status Count(size_t entries) {
    done_ += entries;
    if (done_ < kEntries) return absl::OkStatus();
    done_ = 0;
    return check_();
  }

  // Calls part(begin, end) for pieces of 0 .. count - 1, in order, and counts
  // them.
  template <typename Part>
  absl::Status InPieces(size_t count, Part part) {
    for (size_t begin = 0; begin < count;) {
      const size_t end = std::min(count, begin + kEntries);
      part(begin, end);
      MILLRACE_RETURN_IF_ERROR(Count(end - begin));
      begin = end;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kEntries = 1 << 20;

  const std::function<absl::Status()> check_;
  size_t done_ = 0;  // since the last check
};

}  // namespace millrace
