// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/memory_options.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// A store, ready to sample from.
struct LoadedStore {
  std::shared_ptr<const Store> store;
  // Samples on a device; null if the CPU does. Keeps the store alive.
  std::unique_ptr<TopologySampler> sampler;
};

// Puts a store that has just been opened where the options say, and logs why
// kAuto did not choose a better memory. A device samples only if all partitions
// are mapped.
// INVALID_ARGUMENT: options that contradict each other. RESOURCE_EXHAUSTED: the
// store does not fit; the message has both numbers. FAILED_PRECONDITION: there
// is no device, or it cannot be used, or this program was built without CUDA.
absl::StatusOr<LoadedStore> LoadStore(std::unique_ptr<Store> store,
                                      const MemoryOptions& options);

}  // namespace millrace
