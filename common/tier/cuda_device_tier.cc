// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/tier/device_tier.h"

namespace millrace {

absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    std::shared_ptr<const Store> store, int device, DeviceFallback fallback) {
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info,
                            cuda::OpenDevice(device));
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<cuda::CudaTopologySampler> sampler,
      cuda::CudaTopologySampler::Create(std::move(store), device, fallback));
  MILLRACE_ASSIGN_OR_RETURN(const cuda::DeviceMemoryUse use,
                            cuda::MemoryUseOf(device));
  LogInfo(StrCat("CUDA device ", device, " (", info.name,
                 ") holds the graph: ", sampler->graph().bytes(), " bytes, ",
                 use.free_bytes, " of ", use.total_bytes, " are free"));
  return sampler;
}

}  // namespace millrace
