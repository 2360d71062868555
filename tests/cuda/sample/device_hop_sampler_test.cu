// SPDX-License-Identifier: Apache-2.0
// HopSampler on a CUDA device.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace millrace::testing
