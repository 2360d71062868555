// SPDX-License-Identifier: Apache-2.0
// HopSampler on a CUDA device. Skipped (77) if there is none.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/cuda/sample/hop_sampler_cases.h"
#include "tests/cuda/sample/stream_queue.cuh"

namespace millrace::testing {
namespace {

TEST(DeviceHopSamplerTest, MakesBatchesOfEveryVariant) {
  MakesBatchesOfEveryVariant<StreamQueue>();
}

TEST(DeviceHopSamplerTest, MakesBatchesOfMixedFanouts) {
  MakesBatchesOfMixedFanouts<StreamQueue>();
}

TEST(DeviceHopSamplerTest, MakesBatchesWithoutSeedsOrEdges) {
  MakesBatchesWithoutSeedsOrEdges<StreamQueue>();
}

TEST(DeviceHopSamplerTest, DrawsFromHubs) { DrawsFromHubs<StreamQueue>(); }

TEST(DeviceHopSamplerTest, WaitsOnceUnlessAllNeighborsAreTaken) {
  WaitsOnceUnlessAllNeighborsAreTaken<StreamQueue>();
}

TEST(DeviceHopSamplerTest, SurvivesEveryFailedAllocation) {
  SurvivesEveryFailedAllocation<StreamQueue>();
}

TEST(DeviceHopSamplerTest, SaysThatTheQueueHasFailed) {
  SaysThatTheQueueHasFailed<StreamQueue>();
}

TEST(DeviceDamagedListsTest, ReportsListsThatLeaveTheirFile) {
  DamagedLists<StreamQueue>().ReportsListsThatLeaveTheirFile();
}

TEST(DeviceDamagedListsTest, ReportsNeighborsThatAreNotNodes) {
  DamagedLists<StreamQueue>().ReportsNeighborsThatAreNotNodes();
}

TEST(DeviceDamagedListsTest, StaysInListsWhoseWeightsDoNotAscend) {
  DamagedLists<StreamQueue>().StaysInListsWhoseWeightsDoNotAscend();
}

TEST(DeviceDamagedListsTest, ReportsIdsThatNoPartitionOwns) {
  DamagedLists<StreamQueue>().ReportsIdsThatNoPartitionOwns();
}

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
}  // namespace millrace::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const cudaError_t missing = millrace::testing::MissingDevice();
  if (missing != cudaSuccess) {
    std::printf("skipped without a CUDA device: %s\n",
                cudaGetErrorString(missing));
    return 77;
  }
  return RUN_ALL_TESTS();
}
