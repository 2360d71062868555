// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cub/util_device.cuh>
#include <exception>

#include "common/cuda/runtime/probe.h"

namespace millrace::cuda {
namespace {

__global__ void Probe() {}

}  // namespace

cudaError_t RunProbe() {
  Probe<<<1, 1>>>();
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return launched;
  const cudaError_t ended = cudaDeviceSynchronize();
  if (ended != cudaSuccess) return ended;
  // CUB asks for it once, and keeps the answer, also a failure. It throws if it
  // cannot ask, without the error's number.
  int version = 0;
  try {
    return cub::PtxVersion(version);
  } catch (const std::exception&) {
    return cudaErrorUnknown;
  }
}

}  // namespace millrace::cuda
