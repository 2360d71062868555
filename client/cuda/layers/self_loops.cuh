// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "client/cuda/layers/list_range.cuh"

namespace millrace::cuda::layers {

// The edges of a list that a warp looks at together, from `first` on: a bit for
// each that is not a self loop.
__device__ inline unsigned OtherEdges(const LayerLists& lists, int64_t row,
                                      int64_t first, int64_t end,
                                      unsigned lane) {
  const int64_t edge = first + lane;
  return __ballot_sync(kAllLanes, edge < end && lists.index[edge] != row);
}

// Number of edges of a list that are not self loops. For a warp.
__device__ inline int64_t CountOthers(const LayerLists& lists, int64_t row,
                                      unsigned lane) {
  const ListRange list = RangeOf(lists.indptr, row);
  int64_t others = 0;
  for (int64_t first = list.begin; first < list.end; first += kWarp) {
    others += __popc(OtherEdges(lists, row, first, list.end, lane));
  }
  return others;
}

// A warp for each row, and one more, since the sums of the counts have one
// more.
struct CountLoopedEdges {
  LayerLists lists;
  int32_t* counts;

  __device__ void operator()(int64_t row, int64_t, unsigned lane) const {
    const int64_t count =
        row < lists.rows ? CountOthers(lists, row, lane) + 1 : 0;
    if (lane == 0) counts[row] = static_cast<int32_t>(count);
  }
};

// A warp for each row: copies the other edges in their order, and adds the
// loop.
struct WriteLoopedEdges {
  LayerLists lists;
  LoopedLists looped;

  __device__ void operator()(int64_t row, int64_t, unsigned lane) const {
    const ListRange list = RangeOf(lists.indptr, row);
    int64_t to = looped.indptr[row];
    for (int64_t first = list.begin; first < list.end; first += kWarp) {
      const unsigned others = OtherEdges(lists, row, first, list.end, lane);
      const unsigned below = others & ((1u << lane) - 1);
      if ((others >> lane & 1) != 0) {
        looped.index[to + __popc(below)] = lists.index[first + lane];
      }
      to += __popc(others);
    }
    if (lane == 0) looped.index[to] = static_cast<int32_t>(row);
  }
};

template <typename Queue>
void LaunchSelfLoops(Queue& queue, const LayerLists& lists,
                     const LoopedLists& looped) {
  auto* counts = queue.template Allocate<int32_t>(lists.rows + 1);
  queue.ForEachByWarp(CountLoopedEdges{lists, counts}, lists.rows + 1, 1);
  queue.ExclusiveSum(counts, looped.indptr, lists.rows + 1);
  queue.ForEachByWarp(WriteLoopedEdges{lists, looped}, lists.rows, 1);
}

}  // namespace millrace::cuda::layers
