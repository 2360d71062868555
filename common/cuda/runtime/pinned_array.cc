// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_array.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "common/base/huge_array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {

absl::StatusOr<Array> AllocatePinnedArray(int device, DType dtype,
                                          std::vector<int64_t> shape) {
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  MILLRACE_ASSIGN_OR_RETURN(const Array array, AllocateHugeArray(dtype, shape));
  std::byte* data = Array(array).mutable_data();
  const size_t bytes = HugeBlockBytes(array.total_bytes());
  MILLRACE_RETURN_IF_ERROR(CudaStatus(
      cudaHostRegister(data, bytes,
                       cudaHostRegisterPortable | cudaHostRegisterMapped),
      StrCat("cannot pin ", bytes, " bytes of host memory")));
  const std::shared_ptr<const void> owner(
      data, [array, device](const void* pinned) {
        const ScopedDevice current(device);
        IgnoreFailure(cudaHostUnregister(const_cast<void*>(pinned)));
      });
  return Array::Borrow(dtype, std::move(shape), data, owner);
}

absl::StatusOr<const void*> DevicePointer(const void* pinned) {
  void* pointer = nullptr;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaHostGetDevicePointer(&pointer, const_cast<void*>(pinned),
                                          /*flags=*/0),
                 "cannot use pinned memory on the device"));
  return pointer;
}

}  // namespace millrace::cuda
