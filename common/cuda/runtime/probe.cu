// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "common/cuda/runtime/probe.h"

namespace millrace::cuda {
namespace {

__global__ void Probe() {}

}  // namespace

cudaError_t RunProbe() {
  Probe<<<1, 1>>>();
  const cudaError_t launched = cudaGetLastError();
  return launched == cudaSuccess ? cudaDeviceSynchronize() : launched;
}

}  // namespace millrace::cuda
