// SPDX-License-Identifier: Apache-2.0
#include "common/tier/load_store.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/tier/device_tier.h"
#include "common/tier/until_failure.h"

namespace millrace {
namespace {

absl::Status CheckGpus(const std::vector<int>& gpus) {
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i] < 0 || std::count(gpus.begin(), gpus.end(), gpus[i]) != 1) {
      return InvalidField({.field = "gpus",
                           .value = StrCat(gpus[i]),
                           .limit = "must be different numbers, 0 or more"});
    }
  }
  if (!gpus.empty()) return absl::OkStatus();
  return InvalidField(
      {.field = "gpus", .limit = "must name at least one device"});
}

absl::Status CheckCacheRatio(const MemoryOptions& options) {
  if (!(options.cache_ratio >= 0 && options.cache_ratio <= 1)) {
    return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                         .field = "cache_ratio",
                         .value = StrCat(options.cache_ratio),
                         .limit = "must be from 0 to 1"});
  }
  // kMmap is the default, and the rows outside the cache are pinned.
  if (options.cache_ratio == 0 || options.features == MemoryTier::kMmap ||
      options.features == MemoryTier::kPinned) {
    return absl::OkStatus();
  }
  return InvalidField({.problem = FieldError::Problem::kConflict,
                       .field = "cache_ratio",
                       .value = StrCat(options.cache_ratio),
                       .other_field = "feature_memory",
                       .other_value = std::string(WordOf(options.features))});
}

absl::Status CheckOptions(const MemoryOptions& options) {
  MILLRACE_RETURN_IF_ERROR(CheckGpus(options.gpus));
  MILLRACE_RETURN_IF_ERROR(CheckCacheRatio(options));
  if (options.fallback == DeviceFallback::kForbid &&
      !UsesDevices(options.graph)) {
    return InvalidField(
        {.field = "device_fallback",
         .value = "forbid",
         .limit = "a device samples only if graph_memory is pinned, cuda or "
                  "auto"});
  }
  if (options.gpus != MemoryOptions().gpus && !options.uses_devices()) {
    return InvalidField({.field = "gpus",
                         .value = StrCat(options.gpus.front()),
                         .limit = "no option puts anything on these GPUs"});
  }
  return absl::OkStatus();
}

// Puts the graph or the features of a store into memory.
class StoreLoader {
 public:
  StoreLoader(const MemoryOptions& options, std::shared_ptr<Store> store)
      : options_(options), store_(std::move(store)) {}

  absl::Status LoadFeatures(MemoryTier tier);
  absl::Status LoadGraph(MemoryTier tier);

  LoadedStore Finish();

 private:
  // Frees the copies in devices that an earlier attempt has made.
  void Forget(std::string_view content) {
    if (content == "graph") {
      loaded_.sampler.reset();
      loaded_.drawer.reset();
    } else {
      loaded_.features.reset();
    }
    std::erase_if(loaded_.copies, [content](const MemoryCopy& copy) {
      return copy.content == content;
    });
  }
  // Copies to memory of the host.
  absl::Status Copy(Store::Content content, MemoryTier tier);
  absl::Status SampleOnDevices(MemoryTier tier);

  const MemoryOptions& options_;
  const std::shared_ptr<Store> store_;  // not shared until Finish()
  bool graph_is_pinned_ = false, features_are_pinned_ = false;
  LoadedStore loaded_;
};

absl::Status StoreLoader::Copy(Store::Content content, MemoryTier tier) {
  const bool graph = content == Store::Content::kGraph;
  bool& pinned = graph ? graph_is_pinned_ : features_are_pinned_;
  if (pinned) tier = MemoryTier::kPinned;  // by an attempt that failed later
  const auto add = [&] {
    loaded_.copies.push_back({graph ? "graph" : "features", WordOf(tier),
                              store_->loaded_bytes(content)});
    LogInfo(LogComponent::kStore, "copied to memory",
            {{"content", graph ? "graph" : "features"},
             {"memory", WordOf(tier)},
             {"bytes", store_->loaded_bytes(content)}});
    return absl::OkStatus();
  };
  if (pinned) return add();
  absl::Status status;
  if (tier == MemoryTier::kPinned) {
    MILLRACE_RETURN_IF_ERROR(CheckDevices(options_.gpus));
    status = store_->LoadIntoMemory(
        content, [gpu = options_.gpus.front()](
                     DType dtype, const std::vector<int64_t>& shape) {
          return AllocatePinned(gpu, dtype, shape);
        });
  } else {
    status = store_->LoadIntoMemory(content);
  }
  if (status.ok()) {
    pinned = tier == MemoryTier::kPinned;
    return add();
  }
  if (!absl::IsResourceExhausted(status)) return status;
  return FieldStatus(status.code(),
                     {.field = graph ? "graph_memory" : "feature_memory",
                      .value = std::string(WordOf(tier)),
                      .limit = std::string(status.message())});
}

absl::Status StoreLoader::LoadFeatures(MemoryTier tier) {
  Forget("features");
  double ratio = options_.cache_ratio;
  if (tier == MemoryTier::kMmap && ratio > 0) tier = MemoryTier::kPinned;
  if (tier == MemoryTier::kRam || tier == MemoryTier::kPinned) {
    MILLRACE_RETURN_IF_ERROR(Copy(Store::Content::kFeatures, tier));
  }
  if (tier == MemoryTier::kCuda) {
    ratio = 1;
    MILLRACE_RETURN_IF_ERROR(CheckDevices(options_.gpus));
    MILLRACE_ASSIGN_OR_RETURN(const bool reach, ReachEachOther(options_.gpus));
    if (!reach) {
      MILLRACE_RETURN_IF_ERROR(
          Copy(Store::Content::kFeatures, MemoryTier::kPinned));
    }
  }
  const bool reads_pinned =
      tier == MemoryTier::kPinned && options_.gpus_read_pinned;
  if (ratio == 0 && !reads_pinned) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(DeviceRows made,
                            MakeDeviceFeatures(store_, options_.gpus, ratio));
  loaded_.features = std::move(made.rows);
  loaded_.copies.push_back({"features", WordOf(MemoryTier::kCuda), made.bytes});
  loaded_.gpus = options_.gpus;
  return absl::OkStatus();
}

absl::Status StoreLoader::SampleOnDevices(MemoryTier tier) {
  MILLRACE_ASSIGN_OR_RETURN(
      DeviceSamplers samplers,
      MakeDeviceSamplers(store_, tier == MemoryTier::kPinned, options_.gpus,
                         options_.fallback));
  loaded_.sampler = std::move(samplers.sampler);
  loaded_.drawer = std::move(samplers.drawer);
  loaded_.copies.push_back(
      {"graph", WordOf(MemoryTier::kCuda), samplers.bytes});
  loaded_.gpus = options_.gpus;
  return absl::OkStatus();
}

absl::Status StoreLoader::LoadGraph(MemoryTier tier) {
  Forget("graph");
  switch (tier) {
    case MemoryTier::kRam:
      return Copy(Store::Content::kGraph, tier);
    case MemoryTier::kPinned:
      MILLRACE_RETURN_IF_ERROR(Copy(Store::Content::kGraph, tier));
      return SampleOnDevices(tier);
    case MemoryTier::kCuda:
      return SampleOnDevices(tier);
    default:
      return absl::OkStatus();
  }
}

LoadedStore StoreLoader::Finish() {
  loaded_.store = store_;
  const auto failure = std::make_shared<DeviceFailure>();
  if (options_.graph == MemoryTier::kAuto &&
      options_.fallback == DeviceFallback::kAllow) {
    if (loaded_.sampler != nullptr) {
      loaded_.sampler = std::make_unique<SamplerUntilFailure>(
          std::move(loaded_.sampler), failure);
    }
    if (loaded_.drawer != nullptr) {
      loaded_.drawer = std::make_unique<DrawerUntilFailure>(
          std::move(loaded_.drawer), failure);
    }
  }
  if (options_.features == MemoryTier::kAuto && loaded_.features != nullptr) {
    loaded_.features = std::make_shared<RowsUntilFailure>(
        store_, std::move(loaded_.features), failure);
  }
  if (loaded_.sampler == nullptr && loaded_.drawer == nullptr &&
      loaded_.features == nullptr) {
    loaded_.gpus.clear();
  }
  return std::move(loaded_);
}

// RESOURCE_EXHAUSTED: a device has less memory left than batches may need.
absl::Status CheckRoom(const std::vector<int>& gpus) {
  constexpr uint64_t kShare = 10;
  for (const GpuMemory& gpu : MemoryOfDevices(gpus)) {
    if (gpu.free_bytes >= gpu.total_bytes / kShare) continue;
    return absl::ResourceExhaustedError(
        StrCat("only ", gpu.free_bytes, " of ", gpu.total_bytes,
               " bytes of CUDA device ", gpu.device,
               " would be left for batches, less than a tenth"));
  }
  return absl::OkStatus();
}

// Calls `load` with the best tier that is possible. `content` is "graph" or
// "features".
template <typename Load>
absl::Status LoadBest(std::string_view content, bool may_use_ram, Load load) {
  absl::Status why;
  for (const MemoryTier tier : {MemoryTier::kCuda, MemoryTier::kPinned}) {
    const absl::Status status = load(tier);
    if (status.ok()) return status;
    LogInfo(LogComponent::kStore, "memory not used",
            {{"content", content},
             {"memory", WordOf(tier)},
             {"why", FirstLine(status)}});
    why.Update(status);
  }
  return may_use_ram ? load(MemoryTier::kRam) : why;
}

}  // namespace

absl::StatusOr<LoadedStore> LoadStore(std::unique_ptr<Store> store,
                                      const MemoryOptions& options) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(options));
  StoreLoader loader(options, std::move(store));
  // A GPU that reads pinned memory needs room for batches, too.
  const auto load_graph_with_room = [&](MemoryTier tier) {
    MILLRACE_RETURN_IF_ERROR(loader.LoadGraph(tier));
    return tier == MemoryTier::kRam ? absl::OkStatus()
                                    : CheckRoom(options.gpus);
  };
  const auto load_features_with_room = [&](MemoryTier tier) {
    MILLRACE_RETURN_IF_ERROR(loader.LoadFeatures(tier));
    return tier == MemoryTier::kCuda ? CheckRoom(options.gpus)
                                     : absl::OkStatus();
  };
  // Without a device, the CPU would make all batches.
  const bool may_use_ram = options.fallback == DeviceFallback::kAllow;
  MILLRACE_RETURN_IF_ERROR(
      options.graph == MemoryTier::kAuto
          ? LoadBest("graph", may_use_ram, load_graph_with_room)
          : loader.LoadGraph(options.graph));
  // After the graph, which gains more from the memory of a device.
  MILLRACE_RETURN_IF_ERROR(
      options.features == MemoryTier::kAuto
          ? LoadBest("features", /*may_use_ram=*/true, load_features_with_room)
          : loader.LoadFeatures(options.features));
  return loader.Finish();
}

}  // namespace millrace
