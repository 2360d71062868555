// SPDX-License-Identifier: Apache-2.0
#include "common/tier/load_store.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
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

absl::Status CheckOptions(const MemoryOptions& options) {
  if (options.features == MemoryTier::kCuda ||
      options.features == MemoryTier::kAuto) {
    return InvalidField({.field = "feature_memory",
                         .limit = "features are kept in host memory only"});
  }
  const bool device = options.graph == MemoryTier::kCuda ||
                      options.graph == MemoryTier::kPinned ||
                      options.graph == MemoryTier::kAuto;
  if (options.fallback == DeviceFallback::kForbid && !device) {
    return InvalidField(
        {.field = "device_fallback",
         .value = "forbid",
         .limit = "a device samples only if graph_memory is pinned, cuda or "
                  "auto"});
  }
  return absl::OkStatus();
}

absl::Status Pin(Store::Content content, int device, Store& store) {
  MILLRACE_RETURN_IF_ERROR(CheckDevice(device));
  return store.LoadIntoMemory(content, AllocatePinned);
}

absl::Status LoadFeatures(const MemoryOptions& options, Store& store) {
  constexpr auto kFeatures = Store::Content::kFeatures;
  switch (options.features) {
    case MemoryTier::kRam:
      return store.LoadIntoMemory(kFeatures);
    case MemoryTier::kPinned:
      return Pin(kFeatures, options.device, store);
    default:
      return absl::OkStatus();
  }
}

// Returns what samples the graph on a device; null if the CPU does.
absl::StatusOr<std::unique_ptr<TopologySampler>> LoadGraph(
    MemoryTier tier, const MemoryOptions& options,
    const std::shared_ptr<Store>& store) {
  constexpr auto kGraph = Store::Content::kGraph;
  switch (tier) {
    case MemoryTier::kRam:
      MILLRACE_RETURN_IF_ERROR(store->LoadIntoMemory(kGraph));
      return nullptr;
    case MemoryTier::kPinned:
      MILLRACE_RETURN_IF_ERROR(Pin(kGraph, options.device, *store));
      return MakeDeviceSampler(store, /*pinned=*/true, options.device,
                               options.fallback);
    case MemoryTier::kCuda:
      return MakeDeviceSampler(store, /*pinned=*/false, options.device,
                               options.fallback);
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<LoadedStore> LoadStore(std::unique_ptr<Store> store,
                                      const MemoryOptions& options) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(options));
  MILLRACE_RETURN_IF_ERROR(LoadFeatures(options, *store));
  // Not shared until it is returned.
  const std::shared_ptr<Store> loaded = std::move(store);
  if (options.graph != MemoryTier::kAuto) {
    MILLRACE_ASSIGN_OR_RETURN(auto sampler,
                              LoadGraph(options.graph, options, loaded));
    return LoadedStore{loaded, std::move(sampler)};
  }
  absl::Status why;
  for (const auto& [tier, name] : {std::pair(MemoryTier::kCuda, "a GPU's"),
                                   std::pair(MemoryTier::kPinned, "pinned")}) {
    auto sampler = LoadGraph(tier, options, loaded);
    if (sampler.ok()) return LoadedStore{loaded, *std::move(sampler)};
    LogInfo(StrCat("the graph is not in ", name,
                   " memory: ", FirstLine(sampler.status())));
    why.Update(sampler.status());
  }
  // Without a device, the CPU would make all batches.
  if (options.fallback == DeviceFallback::kForbid) return why;
  MILLRACE_RETURN_IF_ERROR(
      LoadGraph(MemoryTier::kRam, options, loaded).status());
  return LoadedStore{loaded, nullptr};
}

}  // namespace millrace
