// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "client/train/device/accelerator.h"
#include "client/train/device/host_reducer.h"
#include "common/base/strings.h"

namespace millrace {

// The CPU as an accelerator that says that it has little memory.
// Threads: one at a time.
class LimitedAccelerator final : public Accelerator {
 public:
  std::string kind() const override { return "limited"; }
  c10::Device device() const override { return c10::kCPU; }
  std::string name() const override { return "limited:0"; }
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    asked = std::max(asked, need.process);
    return need.process <= limit
               ? absl::OkStatus()
               : absl::ResourceExhaustedError(StrCat(what, " is too much"));
  }
  absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) override {
    return std::make_unique<HostReducer>(collectives);
  }

  uint64_t limit = std::numeric_limits<uint64_t>::max();
  mutable uint64_t asked = 0;  // the most bytes so far
};

}  // namespace millrace
