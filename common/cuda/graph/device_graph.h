// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cuda/graph/device_lists.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"

namespace millrace::cuda {

enum class ColumnPlace : uint8_t {
  kDevice,  // copies in the memory of the device
  kPinned,  // the store's own, which must be pinned (AllocatePinnedArray())
};

// By relation. Relations without lists of the direction have no parts; others
// have those of all mapped partitions, in their order.
struct DirectedLists {
  std::vector<Lists> in, out;
};

// The neighbour lists of a store's mapped partitions, for the kernels of a
// device: all columns that draws read, of both directions where the store has
// them. Immutable; any thread may use it.
class DeviceGraph {
 public:
  // The device must be open.
  // RESOURCE_EXHAUSTED: the copies do not fit; the message has both numbers.
  static absl::StatusOr<std::unique_ptr<DeviceGraph>> Create(
      std::shared_ptr<const Store> store, int device, ColumnPlace place);

  int device() const { return device_; }
  // Returns how much of the device's memory the copies take.
  uint64_t bytes() const { return bytes_; }
  const std::vector<Lists>& lists(Direction direction) const {
    return direction == Direction::kIn ? lists_.in : lists_.out;
  }
  // Returns the lists that one mapped partition has.
  Lists ListsOf(int partition, RelationIndex relation,
                Direction direction) const;

 private:
  DeviceGraph(std::shared_ptr<const Store> store, int device, uint64_t bytes,
              DeviceBlock memory)
      : store_(std::move(store)),
        device_(device),
        bytes_(bytes),
        memory_(std::move(memory)) {}

  const std::shared_ptr<const Store> store_;  // has the pinned columns
  const int device_;
  const uint64_t bytes_;
  const DeviceBlock memory_;
  DirectedLists lists_;
};

}  // namespace millrace::cuda
