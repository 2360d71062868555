// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/array.h"

namespace millrace::cuda {

// Allocates as AllocateHugeArray() does, and pins the memory by way of
// `device`, so that all devices read it too; see DevicePointer().
// RESOURCE_EXHAUSTED: the system refuses. Also the errors of CudaStatus().
absl::StatusOr<Array> AllocatePinnedArray(int device, DType dtype,
                                          std::vector<int64_t> shape);

// Where kernels of the current device find pinned memory, which may be
// elsewhere than for the host.
absl::StatusOr<const void*> DevicePointer(const void* pinned);

}  // namespace millrace::cuda
