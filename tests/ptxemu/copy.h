// SPDX-License-Identifier: Apache-2.0
// Copies between and within host and device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {

// Enqueues a copy. As with CUDA, pageable sources are read before the call
// returns, and copies into pageable memory are complete then; with pinned
// memory the copy happens late.
cudaError_t EnqueueCopy(Stream* stream, void* to, const void* from,
                        size_t bytes);

// Waits for the stream, and returns its device's fault.
cudaError_t FinishStream(Stream* stream);

}  // namespace millrace::ptxemu
