// SPDX-License-Identifier: Apache-2.0
// What only programs with CUDA can do, for code that is also built without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"
#include "common/sample/memory_options.h"
#include "common/sample/neighbor_drawer.h"
#include "common/sample/topology_sampler.h"
#include "common/tier/store_memory_use.h"

namespace millrace {

// FAILED_PRECONDITION: there is no such device, or this program was built
// without CUDA.
absl::Status CheckDevices(const std::vector<int>& gpus);

// How much memory each of them has. Leaves out devices that do not answer.
std::vector<GpuMemory> MemoryOfDevices(const std::vector<int>& gpus);

// Makes arrays for Store::LoadIntoMemory(), pinned by way of a device that has
// been checked.
// RESOURCE_EXHAUSTED: the system refuses to pin them.
absl::StatusOr<Array> AllocatePinned(int gpu, DType dtype,
                                     const std::vector<int64_t>& shape);

struct DeviceSamplers {
  std::unique_ptr<TopologySampler> sampler =
      {};  // null if partitions are missing
  std::unique_ptr<NeighborDrawer> drawer = {};
  uint64_t bytes = 0;  // of devices that the lists take
};

// Samples on devices in turn, from the lists of `store` if they are pinned, and
// otherwise from copies in the memory of each device.
// FAILED_PRECONDITION: as CheckDevices(). RESOURCE_EXHAUSTED: the graph does
// not fit.
absl::StatusOr<DeviceSamplers> MakeDeviceSamplers(
    const std::shared_ptr<const Store>& store, bool pinned,
    const std::vector<int>& gpus, DeviceFallback fallback);

// Whether each of the devices can read the memory of all others. They must have
// been checked.
absl::StatusOr<bool> ReachEachOther(const std::vector<int>& gpus);

// Reads features from memory of devices: the hottest `ratio` of each
// partition's rows from copies there, of which each device has a share, and the
// others where the store has them, which must be pinned. If not all devices
// reach each other, all rows must be pinned.
// FAILED_PRECONDITION: as CheckDevices(). RESOURCE_EXHAUSTED: the copies do not
// fit.
struct DeviceRows {
  std::shared_ptr<FeatureRows> rows;
  uint64_t bytes = 0;  // of devices that they take
};
absl::StatusOr<DeviceRows> MakeDeviceFeatures(
    const std::shared_ptr<const Store>& store, const std::vector<int>& gpus,
    double ratio);

}  // namespace millrace
