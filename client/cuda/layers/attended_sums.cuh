// SPDX-License-Identifier: Apache-2.0
// The weighted sums of both kinds of attention, and the gradients of weights.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "client/cuda/layers/softmax.cuh"

namespace millrace::cuda::layers {

// What edges carry to the rows: of a source's row of `stride` columns, head h
// has C from column h * C on; those past the end begin again, so that with a
// stride of C all heads have the same ones.
struct EdgeValues {
  LayerLists lists;
  int64_t heads;
  int64_t width;  // C
  int64_t stride;
  const float* values;  // [sources, stride]

  __device__ const float* row(int64_t edge) const {
    return values + lists.index[edge] * stride;
  }
};

// A thread for each cell of [rows, H * C]: adds up in the list's order.
struct SumOfAttended {
  EdgeValues input;
  const float* mask;
  Attended out;

  __device__ void operator()(int64_t row, int64_t column) const {
    const ListRange list = RangeOf(input.lists.indptr, row);
    const int64_t head = column / input.width;
    const int64_t value_column = column % input.stride;
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t e = list.begin; e < list.end; ++e) {
      const int64_t cell = e * input.heads + head;
      sum +=
          out.weights[cell] * FactorOf(mask, cell) * input.row(e)[value_column];
    }
    out.sums[row * input.heads * input.width + column] = sum;
  }
};

// For each edge and head: the gradient of the weight, which is a product of the
// row's gradient and what the edge carries.
struct WriteWeightGradients {
  EdgeValues input;
  const float* mask;
  const int32_t* rows;  // of edges
  const float* grad;    // [rows, H, C]
  float* gradients;     // [edges, H]

  __device__ float Part(int64_t edge, int64_t head, unsigned first,
                        unsigned step) const {
    if (edge >= EdgeCount(input.lists)) return 0;
    const int64_t column = head * input.width;
    const float* x = grad + rows[edge] * input.heads * input.width + column;
    const float* y = input.row(edge) + column % input.stride;
    float sum = 0;
    for (int64_t i = first; i < input.width; i += step) sum += x[i] * y[i];
    return sum;
  }
  __device__ void Write(int64_t edge, int64_t head, float sum) const {
    if (edge >= EdgeCount(input.lists)) return;
    const int64_t cell = edge * input.heads + head;
    gradients[cell] = FactorOf(mask, cell) * sum;
  }
};

// The binary logarithm of the number of lanes that add up `terms` terms.
inline unsigned LaneBits(int64_t terms) {
  return std::min<unsigned>(std::bit_width(static_cast<uint64_t>(terms - 1)),
                            std::bit_width(kWarp - 1));
}

template <typename Queue>
const int32_t* LaunchFindRows(Queue& queue, const LayerLists& lists) {
  auto* rows = queue.template Allocate<int32_t>(lists.edges);
  queue.ForEach(FindRows{lists, rows}, lists.edges, 1);
  return rows;
}

}  // namespace millrace::cuda::layers
