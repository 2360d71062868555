// SPDX-License-Identifier: Apache-2.0
// What only programs with CUDA can do, for code that is also built without it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// FAILED_PRECONDITION: there is no such device, or this program was built
// without CUDA.
absl::Status CheckDevice(int device);

// Makes arrays for Store::LoadIntoMemory(), once a device has been checked.
// RESOURCE_EXHAUSTED: the system refuses to pin them.
absl::StatusOr<Array> AllocatePinned(DType dtype,
                                     const std::vector<int64_t>& shape);

// Samples on a device, from the lists of `store` if they are pinned, and
// otherwise from copies in the device's memory.
// FAILED_PRECONDITION: as CheckDevice(). RESOURCE_EXHAUSTED: the graph does not
// fit.
absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    const std::shared_ptr<const Store>& store, bool pinned, int device,
    DeviceFallback fallback);

}  // namespace millrace
