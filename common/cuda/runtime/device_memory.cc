// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {

void DeviceDeleter::operator()(std::byte* data) const {
  const ScopedDevice current(device);
  IgnoreFailure(cudaFree(data));
}

absl::StatusOr<DeviceBlock> AllocateDevice(int device, uint64_t bytes,
                                           std::string_view what) {
  MILLRACE_ASSIGN_OR_RETURN(const DeviceMemoryUse use, MemoryUseOf(device));
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  void* data = nullptr;
  // cudaMalloc() gives a null pointer for no bytes.
  const absl::Status allocated =
      CudaStatus(cudaMalloc(&data, std::max<uint64_t>(bytes, 1)),
                 StrCat("cannot allocate GPU memory for ", what));
  if (absl::IsResourceExhausted(allocated)) {
    return absl::ResourceExhaustedError(
        StrCat(what, " takes ", bytes, " bytes, but CUDA device ", device,
               " has ", use.free_bytes, " of ", use.total_bytes,
               " bytes free\nkeep it in pinned or host memory"));
  }
  MILLRACE_RETURN_IF_ERROR(allocated);
  return DeviceBlock(static_cast<std::byte*>(data), DeviceDeleter{device});
}

}  // namespace millrace::cuda
