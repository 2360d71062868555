// SPDX-License-Identifier: Apache-2.0
// How tasks read lists.
#pragma once

#include <cstdint>

#include "client/cuda/layers/for_each.cuh"
#include "client/cuda/layers/operands.h"

namespace millrace::cuda::layers {

// A range of edges.
struct ListRange {
  int64_t begin = 0, end = 0;
};
__device__ inline ListRange RangeOf(const int32_t* bounds, int64_t i) {
  return {bounds[i], bounds[i + 1]};
}

__device__ inline int64_t EdgeCount(const LayerLists& lists) {
  return lists.indptr[lists.rows];
}

// The row whose list has edge `edge`; that after the last if none has it.
__device__ inline int32_t RowOfEdge(const LayerLists& lists, int32_t edge) {
  const int64_t after = UpperBound(lists.indptr, lists.rows + 1, edge);
  return static_cast<int32_t>(after - 1);
}

// A thread for each edge.
struct FindRows {
  LayerLists lists;
  int32_t* rows;  // [edges]

  __device__ void operator()(int64_t edge, int64_t) const {
    rows[edge] = RowOfEdge(lists, static_cast<int32_t>(edge));
  }
};

}  // namespace millrace::cuda::layers
