// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/peer_access.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/sample/cuda_feature_rows.h"
#include "common/cuda/sample/cuda_neighbor_drawer.h"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/sample/memory_options.h"
#include "common/tier/device_tier.h"

namespace millrace {
namespace {

absl::StatusOr<cuda::SamplingDevice> MakeSamplingDevice(
    const std::shared_ptr<const Store>& store, bool pinned, int device) {
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info,
                            cuda::OpenDevice(device));
  cuda::SamplingDevice made;
  MILLRACE_ASSIGN_OR_RETURN(
      made.graph,
      cuda::DeviceGraph::Create(
          store, device,
          pinned ? cuda::ColumnPlace::kPinned : cuda::ColumnPlace::kDevice));
  made.members = std::make_unique<cuda::DeviceMembers>(device);
  made.workers = std::make_unique<cuda::DeviceWorkers>(device);
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceMemoryUse use,
                            cuda::MemoryUseOf(device));
  LogInfo(LogComponent::kStore, "a GPU samples",
          {{"gpu", device},
           {"name", info.name},
           {"memory", WordOf(pinned ? MemoryTier::kPinned : MemoryTier::kCuda)},
           {"bytes", made.graph->bytes()},
           {"free_bytes", use.free_bytes},
           {"total_bytes", use.total_bytes}});
  return made;
}

}  // namespace

absl::Status CheckDevices(const std::vector<int>& gpus) {
  for (const int device : gpus) {
    MILLRACE_RETURN_IF_ERROR(cuda::OpenDevice(device).status());
  }
  return absl::OkStatus();
}

std::vector<GpuMemory> MemoryOfDevices(const std::vector<int>& gpus) {
  std::vector<GpuMemory> uses;
  for (const int device : gpus) {
    const auto use = cuda::MemoryUseOf(device);
    if (use.ok()) uses.push_back({device, use->free_bytes, use->total_bytes});
  }
  return uses;
}

absl::StatusOr<Array> AllocatePinned(int gpu, DType dtype,
                                     const std::vector<int64_t>& shape) {
  return cuda::AllocatePinnedArray(gpu, dtype, shape);
}

absl::StatusOr<DeviceSamplers> MakeDeviceSamplers(
    const std::shared_ptr<const Store>& store, bool pinned,
    const std::vector<int>& gpus, DeviceFallback fallback) {
  DeviceSamplers samplers;
  std::vector<cuda::SamplingDevice> made;
  for (const int device : gpus) {
    MILLRACE_ASSIGN_OR_RETURN(cuda::SamplingDevice one,
                              MakeSamplingDevice(store, pinned, device));
    samplers.bytes += one.graph->bytes();
    made.push_back(std::move(one));
  }
  const auto devices = std::make_shared<cuda::SamplingDevices>(std::move(made));
  samplers.drawer =
      std::make_unique<cuda::CudaNeighborDrawer>(devices, fallback);
  if (static_cast<int>(store->mapped_partitions().size()) ==
      store->partition_count()) {
    samplers.sampler =
        std::make_unique<cuda::CudaTopologySampler>(devices, fallback);
  }
  return samplers;
}

absl::StatusOr<bool> ReachEachOther(const std::vector<int>& gpus) {
  return cuda::EnablePeerAccess(gpus);
}

absl::StatusOr<DeviceRows> MakeDeviceFeatures(
    const std::shared_ptr<const Store>& store, const std::vector<int>& gpus,
    double ratio) {
  MILLRACE_RETURN_IF_ERROR(CheckDevices(gpus));
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<cuda::CudaFeatureRows> rows,
                            cuda::CudaFeatureRows::Create(store, gpus, ratio));
  for (const int device : gpus) {
    MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceMemoryUse use,
                              cuda::MemoryUseOf(device));
    LogInfo(LogComponent::kStore, "a GPU holds feature rows",
            {{"gpu", device},
             {"bytes", rows->features().bytes_each()},
             {"free_bytes", use.free_bytes},
             {"total_bytes", use.total_bytes}});
  }
  return DeviceRows{rows, rows->features().bytes_each() * gpus.size()};
}

}  // namespace millrace
