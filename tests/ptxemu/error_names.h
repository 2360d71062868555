// SPDX-License-Identifier: Apache-2.0
// The names of the CUDA runtime's errors.
#pragma once

#include <cuda_runtime_api.h>

namespace millrace::ptxemu {

// Returns the name of the enumerator, such as "cudaErrorInvalidValue".
const char* ErrorName(cudaError_t error);

}  // namespace millrace::ptxemu
