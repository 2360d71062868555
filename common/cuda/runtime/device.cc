// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/probe.h"

namespace millrace::cuda {
namespace {

absl::Status CheckIndex(int index) {
  MILLRACE_ASSIGN_OR_RETURN(const int count, CountDevices());
  if (index >= 0 && index < count) return absl::OkStatus();
  return CudaStatus(cudaErrorInvalidDevice,
                    StrCat("cannot open CUDA device ", index, " of ", count));
}

// The runtime returns all freed memory to the system at each synchronisation
// unless it is told to keep it.
absl::Status KeepFreedMemory(int device) {
  cudaMemPool_t pool = nullptr;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetDefaultMemPool(&pool, device),
                 "cannot use the device's memory pool"));
  uint64_t threshold = UINT64_MAX;
  return CudaStatus(cudaMemPoolSetAttribute(
                        pool, cudaMemPoolAttrReleaseThreshold, &threshold),
                    "cannot use the device's memory pool");
}

// The device of the thread's innermost ScopedDevice, or -1 outside all.
thread_local int scoped_device = -1;

}  // namespace

absl::StatusOr<int> CountDevices() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  const bool none = counted == cudaSuccess && count == 0;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(none ? cudaErrorNoDevice : counted, "cannot use CUDA"));
  return count;
}

absl::StatusOr<DeviceInfo> OpenDevice(int index) {
  MILLRACE_RETURN_IF_ERROR(CheckIndex(index));
  const ScopedDevice device(index);
  MILLRACE_RETURN_IF_ERROR(device.status());
  cudaDeviceProp properties;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, index),
                 StrCat("cannot open CUDA device ", index)));
  MILLRACE_RETURN_IF_ERROR(CudaStatus(
      RunProbe(), StrCat("CUDA device ", index, " cannot run kernels")));
  MILLRACE_RETURN_IF_ERROR(KeepFreedMemory(index));
  return DeviceInfo{index, properties.name, properties.major, properties.minor};
}

ScopedDevice::ScopedDevice(int device)
    : device_(device), outer_(scoped_device) {
  int current = 0;
  status_ = CudaStatus(cudaGetDevice(&current), "cannot use CUDA");
  if (status_.ok() && device != current) {
    status_ = CudaStatus(cudaSetDevice(device),
                         StrCat("cannot open CUDA device ", device));
  }
  if (!status_.ok()) return;
  before_ = outer_ >= 0 || current > 0 ? current : -1;
  scoped_device = device;
}

ScopedDevice::~ScopedDevice() {
  if (!status_.ok()) return;
  scoped_device = outer_;
  if (before_ >= 0 && before_ != device_) {
    IgnoreFailure(cudaSetDevice(before_));
  }
}

absl::StatusOr<DeviceMemoryUse> MemoryUseOf(int device) {
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  size_t free_bytes = 0, total_bytes = 0;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free_bytes, &total_bytes),
                 StrCat("cannot read the memory of CUDA device ", device)));
  return DeviceMemoryUse{free_bytes, total_bytes};
}

void TrimMemory(int device) {
  cudaMemPool_t pool = nullptr;
  const cudaError_t found = cudaDeviceGetDefaultMemPool(&pool, device);
  IgnoreFailure(found);
  if (found == cudaSuccess) IgnoreFailure(cudaMemPoolTrimTo(pool, 0));
}

}  // namespace millrace::cuda
