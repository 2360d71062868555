// SPDX-License-Identifier: Apache-2.0
// HopSampler with filters on CPU threads.
#include <gtest/gtest.h>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "tests/cuda/sample/list_filter_cases.h"

namespace millrace::testing {
namespace {

TEST(ListFilterTest, MakesBatchesWithoutExcludedEdgesOfInLists) {
  MakesBatchesWithoutExcludedEdges<ThreadQueue>(Direction::kIn);
}

TEST(ListFilterTest, MakesBatchesWithoutExcludedEdgesOfOutLists) {
  MakesBatchesWithoutExcludedEdges<ThreadQueue>(Direction::kOut);
}

TEST(ListFilterTest, LeavesOutWholeLists) {
  LeavesOutWholeLists<ThreadQueue>();
}

TEST(ListFilterTest, FiltersHubs) { FiltersHubs<ThreadQueue>(); }

TEST(ListFilterTest, WaitsForTheSizesOfFilteredLists) {
  WaitsForTheSizesOfFilteredLists<ThreadQueue>();
}

TEST(ListFilterTest, ReportsDamagedLists) {
  DamagedLists<ThreadQueue>("train").ReportsListsThatLeaveTheirFile();
}

TEST(ListFilterTest, ReportsNeighborsThatAreNotNodes) {
  DamagedLists<ThreadQueue>("train").ReportsNeighborsThatAreNotNodes();
}

TEST(ListFilterTest, StaysInListsWhoseWeightsDoNotAscend) {
  DamagedLists<ThreadQueue>("train").StaysInListsWhoseWeightsDoNotAscend();
}

TEST(ListFilterTest, ReportsIdsThatNoPartitionOwns) {
  DamagedLists<ThreadQueue>("train").ReportsIdsThatNoPartitionOwns();
}

}  // namespace
}  // namespace millrace::testing
