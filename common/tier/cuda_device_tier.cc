// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/tier/device_tier.h"

namespace millrace {

absl::Status CheckDevice(int device) {
  return cuda::OpenDevice(device).status();
}

absl::StatusOr<Array> AllocatePinned(DType dtype,
                                     const std::vector<int64_t>& shape) {
  return cuda::AllocatePinnedArray(dtype, shape);
}

absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    const std::shared_ptr<const Store>& store, bool pinned, int device,
    DeviceFallback fallback) {
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info,
                            cuda::OpenDevice(device));
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<cuda::CudaTopologySampler> sampler,
      cuda::CudaTopologySampler::Create(
          store, device,
          pinned ? cuda::ColumnPlace::kPinned : cuda::ColumnPlace::kDevice,
          fallback));
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceMemoryUse use,
                            cuda::MemoryUseOf(device));
  LogInfo(StrCat("CUDA device ", device, " (", info.name, ") samples from ",
                 pinned ? "pinned" : "its", " memory; ",
                 sampler->graph().bytes(),
                 " bytes of the graph are in its own, ", use.free_bytes, " of ",
                 use.total_bytes, " are free"));
  return sampler;
}

}  // namespace millrace
