// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/cuda_status.h"

#include <string>

#include "common/base/status_lines.h"
#include "common/base/strings.h"

namespace millrace::cuda {
namespace {

constexpr char kDriverAdvice[] =
    "install NVIDIA's driver 580 or later, or keep everything in host memory";
constexpr char kDeviceAdvice[] =
    "check nvidia-smi and CUDA_VISIBLE_DEVICES, or keep everything in host "
    "memory";
constexpr char kArchitectureAdvice[] =
    "use a device of compute capability 7.5 or later, or build with its "
    "architecture in CMAKE_CUDA_ARCHITECTURES";

constexpr char kFailureAdvice[] =
    "restart the process; `nvidia-smi` and the kernel's log (dmesg) may say "
    "what happened to the device";

std::string TextOf(cudaError_t status) {
  return StrCat(cudaGetErrorName(status), ": ", cudaGetErrorString(status));
}

absl::Status FailedDevice(int device, std::string_view why) {
  return absl::UnavailableError(StrCat(
      "CUDA device ", device, " has failed: ", why, "\n", kFailureAdvice));
}

}  // namespace

absl::Status CudaStatus(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return absl::OkStatus();
  IgnoreFailure(status);
  const std::string text = StrCat(what, ": ", TextOf(status));
  switch (status) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(text);
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorUnsupportedPtxVersion:
      return absl::FailedPreconditionError(StrCat(text, "\n", kDriverAdvice));
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInitializationError:
    case cudaErrorNotSupported:  // such as memory pools
      return absl::FailedPreconditionError(StrCat(text, "\n", kDeviceAdvice));
    case cudaErrorDevicesUnavailable:
      return WithReason(
          absl::FailedPreconditionError(StrCat(text, "\n", kDeviceAdvice)),
          kBusyDevice);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return absl::FailedPreconditionError(
          StrCat(text, "\n", kArchitectureAdvice));
    default:
      return absl::UnavailableError(StrCat(text, "\n", kFailureAdvice));
  }
}

absl::Status DeviceFailureStatus(cudaError_t status, int device) {
  IgnoreFailure(status);
  return FailedDevice(device, TextOf(status));
}

absl::Status AsDeviceFailure(absl::Status status, int device) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return FailedDevice(device, FirstLine(status));
}

void IgnoreFailure(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
}

}  // namespace millrace::cuda
