// SPDX-License-Identifier: Apache-2.0
// Lists of the edges from each source, through which gradients of sources are
// added up in the order of rows, and within a row in that of its list.
#pragma once

#include <bit>
#include <cstdint>

#include "client/cuda/layers/list_range.cuh"

namespace millrace::cuda::layers {

// The edges from source j are edge[begin[j]] to edge[begin[j + 1] - 1],
// ascending, and row[k] is the row whose list has edge[k].
struct EdgesBySource {
  const int32_t* begin = nullptr;  // [sources + 1]
  const int32_t* edge = nullptr;   // [edges]
  const int32_t* row = nullptr;    // [edges]
};

// A thread for each edge. What is not in the lists comes last.
struct WriteSortKeys {
  LayerLists lists;
  int64_t sources;
  int32_t *keys, *edges;

  __device__ void operator()(int64_t edge, int64_t) const {
    keys[edge] = edge < EdgeCount(lists) ? lists.index[edge]
                                         : static_cast<int32_t>(sources);
    edges[edge] = static_cast<int32_t>(edge);
  }
};

// A thread for each source, and one more: finds where the edges begin.
struct FindSources {
  const int32_t* keys;  // ascending
  int64_t edges;
  int32_t* begin;

  __device__ void operator()(int64_t source, int64_t) const {
    const auto before = static_cast<int32_t>(source - 1);
    begin[source] = static_cast<int32_t>(UpperBound(keys, edges, before));
  }
};

// A thread for each sorted edge.
struct FindSortedRows {
  LayerLists lists;
  const int32_t* edge;
  int32_t* row;

  __device__ void operator()(int64_t k, int64_t) const {
    row[k] = RowOfEdge(lists, edge[k]);
  }
};

// Takes memory for 20 bytes an edge and 4 a source, and what the sort needs.
template <typename Queue>
EdgesBySource GroupBySource(Queue& queue, const LayerLists& lists,
                            int64_t sources) {
  auto* keys = queue.template Allocate<int32_t>(lists.edges);
  auto* edges = queue.template Allocate<int32_t>(lists.edges);
  auto* sorted_keys = queue.template Allocate<int32_t>(lists.edges);
  auto* sorted_edges = queue.template Allocate<int32_t>(lists.edges);
  auto* rows = queue.template Allocate<int32_t>(lists.edges);
  auto* begin = queue.template Allocate<int32_t>(sources + 1);
  queue.ForEach(WriteSortKeys{lists, sources, keys, edges}, lists.edges, 1);
  queue.SortPairs(keys, sorted_keys, edges, sorted_edges, lists.edges,
                  std::bit_width(static_cast<uint64_t>(sources)));
  queue.ForEach(FindSources{sorted_keys, lists.edges, begin}, sources + 1, 1);
  queue.ForEach(FindSortedRows{lists, sorted_edges, rows}, lists.edges, 1);
  return {begin, sorted_edges, rows};
}

}  // namespace millrace::cuda::layers
