// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace::cuda {

// Frees memory of a device. Work that uses it must have ended.
struct DeviceDeleter {
  int device = 0;
  void operator()(std::byte* data) const;
};
using DeviceBlock = std::unique_ptr<std::byte, DeviceDeleter>;

// Allocates uninitialised memory, aligned to 256 bytes, that lasts. `what` is
// named in errors: "holding the graph in GPU memory".
// RESOURCE_EXHAUSTED: the device has not as much; the message has both numbers.
absl::StatusOr<DeviceBlock> AllocateDevice(int device, uint64_t bytes,
                                           std::string_view what);

}  // namespace millrace::cuda
