// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_pool.h"

#include <cuda_runtime_api.h>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {

std::shared_ptr<PinnedPool> PinnedPool::Create(int device,
                                               uint64_t max_idle_bytes) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(device, max_idle_bytes));
}

absl::StatusOr<std::byte*> PinnedPool::Make(uint64_t bytes) const {
  const ScopedDevice current(device_);
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(current.status(), device_));
  void* data = nullptr;
  const absl::Status pinned =
      CudaStatus(cudaHostAlloc(&data, bytes, cudaHostAllocPortable),
                 StrCat("cannot pin ", bytes, " bytes of host memory"));
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(pinned, device_));
  return static_cast<std::byte*>(data);
}

void PinnedPool::Free(std::byte* block) const {
  const ScopedDevice current(device_);
  IgnoreFailure(cudaFreeHost(block));
}

}  // namespace millrace::cuda
