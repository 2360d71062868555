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

// Allocates uninitialised memory, aligned to 256 bytes. Errors say what it is
// for: `what` is "the graph", for instance.
// RESOURCE_EXHAUSTED: the device does not have that much; the message has both
// numbers.
absl::StatusOr<DeviceBlock> AllocateDevice(int device, uint64_t bytes,
                                           std::string_view what);

}  // namespace millrace::cuda
