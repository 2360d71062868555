// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cuda/graph/feature_column.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/graph/store.h"

namespace millrace::cuda {

// Columns without features have rows of 0 bytes.
struct FeatureColumns {
  std::vector<FeatureColumn> nodes;  // by node type
  std::vector<FeatureColumn> edges;  // by relation
};

// The feature rows of a store's mapped partitions, for kernels of one or more
// devices of this host. The hottest rows of each partition are in the memory of
// the devices, which share them row by row and read each other's; the others
// are read in the store. Immutable; any thread may use it.
class DeviceFeatures {
 public:
  // Copies the first HottestRows(ratio, rows) of each partition's rows, also of
  // edges. `devices`: at least one, all different, and open. `ratio`: 0 to 1.
  // The store must outlive the object.
  // RESOURCE_EXHAUSTED: a device does not have enough memory; the message has
  // both numbers. FAILED_PRECONDITION: rows that are read in the store are not
  // pinned (AllocatePinnedArray()), which are all those not copied, and all
  // copied ones if a device cannot read another one's memory; the message says
  // which. UNAVAILABLE: a device does not work.
  static absl::StatusOr<std::unique_ptr<DeviceFeatures>> Create(
      const Store& store, const std::vector<int>& devices, double ratio);

  const std::vector<int>& devices() const { return devices_; }
  // How much memory the rows take on each of the devices.
  uint64_t bytes_each() const { return bytes_each_; }
  // The columns as kernels of devices()[index] read them.
  const FeatureColumns& columns(size_t index) const { return columns_[index]; }

 private:
  DeviceFeatures(std::vector<int> devices, uint64_t bytes_each)
      : devices_(std::move(devices)), bytes_each_(bytes_each) {}

  const std::vector<int> devices_;
  const uint64_t bytes_each_;
  std::vector<DeviceBlock> shares_, tables_;  // by device
  std::vector<FeatureColumns> columns_;       // by device
};

}  // namespace millrace::cuda
