// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace millrace::cuda {

// Runs a kernel that does nothing on the current device. A device that cannot
// run it can run no other kernel of this program either.
cudaError_t RunProbe();

}  // namespace millrace::cuda
