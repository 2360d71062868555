// SPDX-License-Identifier: Apache-2.0
// HopSampler on CPU threads.
#include <gtest/gtest.h>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "tests/cuda/sample/hop_sampler_cases.h"

namespace millrace::testing {
namespace {

TEST(HopSamplerTest, MakesBatchesOfEveryVariant) {
  MakesBatchesOfEveryVariant<ThreadQueue>();
}

TEST(HopSamplerTest, MakesBatchesOfMixedFanouts) {
  MakesBatchesOfMixedFanouts<ThreadQueue>();
}

TEST(HopSamplerTest, MakesBatchesWithoutSeedsOrEdges) {
  MakesBatchesWithoutSeedsOrEdges<ThreadQueue>();
}

TEST(HopSamplerTest, DrawsFromHubs) { DrawsFromHubs<ThreadQueue>(); }

TEST(HopSamplerTest, WaitsOnceUnlessAllNeighborsAreTaken) {
  WaitsOnceUnlessAllNeighborsAreTaken<ThreadQueue>();
}

TEST(HopSamplerTest, SurvivesEveryFailedAllocation) {
  SurvivesEveryFailedAllocation<ThreadQueue>();
}

TEST(HopSamplerTest, SaysThatTheQueueHasFailed) {
  SaysThatTheQueueHasFailed<ThreadQueue>();
}

TEST(DamagedListsTest, ReportsListsThatLeaveTheirFile) {
  DamagedLists<ThreadQueue>().ReportsListsThatLeaveTheirFile();
}

TEST(DamagedListsTest, ReportsNeighborsThatAreNotNodes) {
  DamagedLists<ThreadQueue>().ReportsNeighborsThatAreNotNodes();
}

TEST(DamagedListsTest, StaysInListsWhoseWeightsDoNotAscend) {
  DamagedLists<ThreadQueue>().StaysInListsWhoseWeightsDoNotAscend();
}

TEST(DamagedListsTest, ReportsIdsThatNoPartitionOwns) {
  DamagedLists<ThreadQueue>().ReportsIdsThatNoPartitionOwns();
}

}  // namespace
}  // namespace millrace::testing
