// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "client/train/device/accelerator.h"
#include "common/base/field_error.h"

namespace millrace {

// Checks that an accelerator has memory for each of many batches of similar
// sizes, so it is enough to check those that are twice as large as any checked
// before. Threads: one at a time.
class MemoryCheck {
 public:
  // Keeps a reference to `accelerator`. `reason` is that of errors.
  MemoryCheck(const Accelerator& accelerator, Reason reason)
      : accelerator_(accelerator), reason_(reason) {}

  // Fails like Accelerator::CheckMemory.
  absl::Status Check(std::string_view what, uint64_t bytes);

 private:
  const Accelerator& accelerator_;
  const Reason reason_;
  uint64_t checked_bytes_ = 0;  // the most so far
};

}  // namespace millrace
