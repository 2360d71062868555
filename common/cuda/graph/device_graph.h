// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cuda/graph/device_lists.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"

namespace millrace::cuda {

// A copy of the neighbour lists of a store's mapped partitions in the memory of
// a device. Immutable; any thread may use it.
class DeviceGraph {
 public:
  // Returns how many bytes a copy takes.
  static uint64_t SizeOf(const Store& store);

  // Opens nothing: the device must be open. Copies all columns that draws read,
  // of both directions where the store has them.
  // RESOURCE_EXHAUSTED: they do not fit; the message has both numbers.
  static absl::StatusOr<std::unique_ptr<DeviceGraph>> Create(const Store& store,
                                                             int device);

  int device() const { return device_; }
  uint64_t bytes() const { return bytes_; }
  // By relation. Relations without lists of the direction have no parts.
  const std::vector<Lists>& lists(Direction direction) const {
    return lists_[static_cast<int>(direction)];
  }

 private:
  DeviceGraph(int device, uint64_t bytes, DeviceBlock memory)
      : device_(device), bytes_(bytes), memory_(std::move(memory)) {}

  const int device_;
  const uint64_t bytes_;
  const DeviceBlock memory_;
  std::vector<Lists> lists_[2];  // [direction][relation]
};

}  // namespace millrace::cuda
