// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/memory_check.h"

namespace millrace {

absl::Status MemoryCheck::Check(std::string_view what, uint64_t bytes) {
  if (bytes / 2 < checked_bytes_) return absl::OkStatus();
  checked_bytes_ = bytes;
  return WithReason(
      accelerator_.CheckMemory(what, {.process = bytes, .host = bytes}),
      reason_);
}

}  // namespace millrace
