// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "common/base/field_error.h"

namespace millrace::cuda {

// Of errors of CudaStatus(): other processes have the device for themselves.
inline constexpr Reason kBusyDevice = {"gpu_is_busy"};

// Returns OK for cudaSuccess, and otherwise an error that starts with what
// failed, such as "cannot open CUDA device 0", and gives the runtime's name and
// text. Takes the error back from the runtime, so that no later call returns it
// too.
// RESOURCE_EXHAUSTED: too little memory. FAILED_PRECONDITION: there is no
// device, no driver, or one that cannot run this program's kernels; the second
// line says what to do. UNAVAILABLE: all other errors, most of which leave the
// process without the device.
absl::Status CudaStatus(cudaError_t status, std::string_view what);

// Returns the error of a device that has been opened, other than that of too
// little memory. UNAVAILABLE, whatever it is, since the device could be used
// before; the first line names the device, the second says what to do.
absl::Status DeviceFailureStatus(cudaError_t status, int device);

// Makes the same of an error of CudaStatus(), or of what calls it, about such a
// device. RESOURCE_EXHAUSTED and OK remain what they are.
absl::Status AsDeviceFailure(absl::Status status, int device);

// Takes an error back from the runtime. For calls that give something back,
// which fail only if the device does not work any longer.
void IgnoreFailure(cudaError_t status);

}  // namespace millrace::cuda
