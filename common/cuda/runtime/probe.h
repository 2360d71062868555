// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace millrace::cuda {

// Runs a kernel that does nothing on the current device, and lets CUB read what
// it needs to know of it. A device that cannot run this kernel can run no other
// kernel of this program either.
cudaError_t RunProbe();

}  // namespace millrace::cuda
