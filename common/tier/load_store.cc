// SPDX-License-Identifier: Apache-2.0
#include "common/tier/load_store.h"

#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/tier/device_tier.h"

namespace millrace {
namespace {

std::string FirstLine(const absl::Status& status) {
  const std::string text(status.message());
  return text.substr(0, text.find('\n'));
}

// A sampler on the device that the options ask for; null if there is none and
// kAuto may do without.
absl::StatusOr<std::unique_ptr<TopologySampler>> MakeSampler(
    const std::shared_ptr<const Store>& store, const MemoryOptions& options) {
  auto sampler = MakeDeviceSampler(store, options.device, options.fallback);
  if (!sampler.ok() && options.graph == MemoryTier::kAuto) {
    LogInfo(StrCat("the graph is kept in RAM: ", FirstLine(sampler.status())));
    return nullptr;
  }
  return sampler;
}

}  // namespace

absl::StatusOr<LoadedStore> LoadStore(std::unique_ptr<Store> store,
                                      const MemoryOptions& options) {
  if (options.features == MemoryTier::kRam) {
    MILLRACE_RETURN_IF_ERROR(store->LoadIntoMemory(Store::Content::kFeatures));
  }
  if (options.graph == MemoryTier::kRam) {
    MILLRACE_RETURN_IF_ERROR(store->LoadIntoMemory(Store::Content::kGraph));
  }
  const std::shared_ptr<Store> shared = std::move(store);
  LoadedStore loaded{.store = shared, .sampler = nullptr};
  if (options.graph == MemoryTier::kCuda ||
      options.graph == MemoryTier::kAuto) {
    MILLRACE_ASSIGN_OR_RETURN(loaded.sampler, MakeSampler(shared, options));
    // Nothing has read the store yet.
    if (loaded.sampler == nullptr) {
      MILLRACE_RETURN_IF_ERROR(shared->LoadIntoMemory(Store::Content::kGraph));
    }
  }
  return loaded;
}

}  // namespace millrace
