// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"
#include "common/sample/memory_options.h"
#include "common/sample/neighbor_drawer.h"
#include "common/sample/topology_sampler.h"
#include "common/tier/store_memory_use.h"

namespace millrace {

// A store, ready to sample from.
struct LoadedStore {
  std::shared_ptr<const Store> store;
  // Sample on devices; null if the CPU does.
  std::unique_ptr<TopologySampler> sampler =
      {};  // null if partitions are missing
  std::unique_ptr<NeighborDrawer> drawer = {};
  // Reads features from memory of devices; null if the CPU reads the store's.
  std::shared_ptr<FeatureRows> features = {};
  std::vector<MemoryCopy> copies = {};
  // The devices in use; empty if there are none.
  std::vector<int> gpus = {};
};

// Puts a store that has just been opened where the options say, and logs why
// kAuto did not choose a better memory.
// INVALID_ARGUMENT: options that contradict each other. RESOURCE_EXHAUSTED: the
// store does not fit; the message has both numbers. FAILED_PRECONDITION: there
// is no device, or it cannot be used, or this program was built without CUDA.
absl::StatusOr<LoadedStore> LoadStore(std::unique_ptr<Store> store,
                                      const MemoryOptions& options);

}  // namespace millrace
