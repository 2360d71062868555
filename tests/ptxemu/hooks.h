// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NCCL (nccl/) needs of this runtime beside the functions
// of CUDA. libcudart.so exports these functions, which are not for programs.
// Functions without a word about it must be called without the runtime's lock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"

namespace millrace::ptxemu::hooks {

// Adds work to a stream of `device`; the null handle is the device's default
// stream. Once `step` is first in its stream, it is called again and again,
// with the runtime's lock held, until it returns true: the work is done. It
// must neither block nor call CUDA. An error becomes the fault of the device.
// `step` is destroyed when the work has ended, or is dropped after a fault.
// cudaErrorInvalidResourceHandle: the stream is not one of the device.
cudaError_t Enqueue(int device, cudaStream_t stream,
                    std::function<absl::StatusOr<bool>()> step);

// Returns where the bytes behind a pointer are. Must be called by a step.
// INTERNAL: they are not in one live allocation that kernels of `device` may
// access; the message is that of the fault.
absl::StatusOr<uint8_t*> Resolve(int device, const void* pointer, size_t bytes);

// Lets a piece of queued work run, as functions of CUDA do that wait.
void RunQueuedWork();

// The number of a device in the machine, which CUDA_VISIBLE_DEVICES hides.
int NumberOf(int device);

}  // namespace millrace::ptxemu::hooks
