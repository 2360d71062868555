// SPDX-License-Identifier: Apache-2.0
// HopSampler on a CUDA device: what device_topology_sampler_test, which makes
// batches of every variant, does not show.
#include <gtest/gtest.h>

#include "tests/cuda/sample/hop_sampler_cases.h"
#include "tests/cuda/sample/list_filter_cases.h"
#include "tests/cuda/sample/stream_queue.cuh"

namespace millrace::testing {
namespace {

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

TEST(DeviceListFilterTest, MakesBatchesWithoutExcludedEdgesOfInLists) {
  MakesBatchesWithoutExcludedEdges<StreamQueue>(Direction::kIn);
}

TEST(DeviceListFilterTest, LeavesOutWholeLists) {
  LeavesOutWholeLists<StreamQueue>();
}

TEST(DeviceListFilterTest, FiltersHubs) { FiltersHubs<StreamQueue>(); }

TEST(DeviceListFilterTest, WaitsForTheSizesOfFilteredLists) {
  WaitsForTheSizesOfFilteredLists<StreamQueue>();
}

TEST(DeviceListFilterTest, ReportsNeighborsThatAreNotNodes) {
  DamagedLists<StreamQueue>("train").ReportsNeighborsThatAreNotNodes();
}

TEST(DeviceListFilterTest, StaysInListsWhoseWeightsDoNotAscend) {
  DamagedLists<StreamQueue>("train").StaysInListsWhoseWeightsDoNotAscend();
}

TEST(DeviceListFilterTest, ReportsIdsThatNoPartitionOwns) {
  DamagedLists<StreamQueue>("train").ReportsIdsThatNoPartitionOwns();
}

}  // namespace
}  // namespace millrace::testing
