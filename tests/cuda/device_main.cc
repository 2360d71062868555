// SPDX-License-Identifier: Apache-2.0
// main() of tests that need a CUDA device. Skipped (77) if there is none.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace {

// Why there is no device; cudaSuccess if there is one, or if CUDA fails in
// another way, of which tests must say more.
cudaError_t MissingDevice() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices == 0) return cudaErrorNoDevice;
  const bool missing = status == cudaErrorNoDevice ||
                       status == cudaErrorInsufficientDriver ||
                       status == cudaErrorStubLibrary;
  return missing ? status : cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const cudaError_t missing = MissingDevice();
  if (missing != cudaSuccess) {
    std::printf("skipped: needs a CUDA device: %s\n",
                cudaGetErrorString(missing));
    return 77;
  }
  return RUN_ALL_TESTS();
}
