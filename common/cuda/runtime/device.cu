// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {
namespace {

// Does nothing; a device that cannot run it can run no other kernel either.
__global__ void Probe() {}

absl::Status CheckIndex(int index) {
  int count = 0;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceCount(&count), "cannot use CUDA"));
  if (index >= 0 && index < count) return absl::OkStatus();
  return CudaStatus(count == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice,
                    StrCat("cannot open CUDA device ", index, " of ", count));
}

absl::Status RunProbe() {
  Probe<<<1, 1>>>();
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaGetLastError(), "cannot run kernels"));
  return CudaStatus(cudaDeviceSynchronize(), "cannot run kernels");
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

}  // namespace

absl::StatusOr<DeviceInfo> OpenDevice(int index) {
  MILLRACE_RETURN_IF_ERROR(CheckIndex(index));
  MILLRACE_RETURN_IF_ERROR(UseDevice(index));
  cudaDeviceProp properties;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, index),
                 StrCat("cannot open CUDA device ", index)));
  MILLRACE_RETURN_IF_ERROR(RunProbe());
  MILLRACE_RETURN_IF_ERROR(KeepFreedMemory(index));
  return DeviceInfo{index, properties.name, properties.major, properties.minor};
}

absl::Status UseDevice(int device) {
  return CudaStatus(cudaSetDevice(device),
                    StrCat("cannot open CUDA device ", device));
}

absl::StatusOr<DeviceMemoryUse> MemoryUseOf(int device) {
  MILLRACE_RETURN_IF_ERROR(UseDevice(device));
  size_t free_bytes = 0, total_bytes = 0;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free_bytes, &total_bytes),
                 StrCat("cannot read the memory of CUDA device ", device)));
  return DeviceMemoryUse{free_bytes, total_bytes};
}

}  // namespace millrace::cuda
