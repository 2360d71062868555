// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "client/cuda/layers/edges_by_source.cuh"
#include "client/cuda/layers/list_range.cuh"

namespace millrace::cuda::layers {

// A thread for each cell of the result: adds up its column over the row's list,
// in the list's order.
template <Reduction kHow>
struct ReduceList {
  Aggregation input;
  const float* source;
  float* out;

  __device__ void operator()(int64_t row, int64_t column) const {
    const ListRange list = RangeOf(input.lists.indptr, row);
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t e = list.begin; e < list.end; ++e) {
      const float value = source[input.lists.index[e] * input.width + column];
      if constexpr (kHow == Reduction::kWeightedSum) {
        sum = std::fma(input.edge_weight[e], value, sum);
      } else {
        sum += value;
      }
    }
    if constexpr (kHow == Reduction::kMean) {
      if (list.begin < list.end) {
        sum /= static_cast<float>(list.end - list.begin);
      }
    }
    out[row * input.width + column] = sum;
  }
};

// The same for the maximum. A NaN stays the maximum if it comes first, and is
// ignored elsewhere.
struct MaximizeList {
  Aggregation input;
  const float* source;
  float* out;
  int32_t* largest_edge;  // null if not wanted

  __device__ void operator()(int64_t row, int64_t column) const {
    const ListRange list = RangeOf(input.lists.indptr, row);
    float largest = 0;
    int64_t edge = -1;
    MILLRACE_UNROLL
    for (int64_t e = list.begin; e < list.end; ++e) {
      const float value = source[input.lists.index[e] * input.width + column];
      if (edge < 0 || value > largest) {
        largest = value;
        edge = e;
      }
    }
    const int64_t cell = row * input.width + column;
    out[cell] = largest;
    if (largest_edge != nullptr) {
      largest_edge[cell] = static_cast<int32_t>(edge);
    }
  }
};

// A thread for each cell of the source's gradient: adds up its column over the
// edges from the source.
template <Reduction kHow>
struct SumOfRowGradients {
  Aggregation input;
  EdgesBySource edges;
  const float* grad;
  const int32_t* largest_edge;  // only for kMax
  float* source_grad;

  // The factor by which an edge to `row` multiplies the row's gradient.
  __device__ float factor(int32_t edge, int32_t row) const {
    if constexpr (kHow == Reduction::kMean) {
      const ListRange list = RangeOf(input.lists.indptr, row);
      return 1.0f / static_cast<float>(list.end - list.begin);
    }
    if constexpr (kHow == Reduction::kWeightedSum) {
      return input.edge_weight[edge];
    }
    return 1.0f;
  }
  __device__ void operator()(int64_t source, int64_t column) const {
    const ListRange range = RangeOf(edges.begin, source);
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t k = range.begin; k < range.end; ++k) {
      const int32_t edge = edges.edge[k], row = edges.row[k];
      const int64_t cell = row * input.width + column;
      if constexpr (kHow == Reduction::kMax) {
        if (largest_edge[cell] == edge) sum += grad[cell];
      } else {
        sum = std::fma(factor(edge, row), grad[cell], sum);
      }
    }
    source_grad[source * input.width + column] = sum;
  }
};

template <typename Queue>
void LaunchAggregate(Queue& queue, const Aggregation& input,
                     const float* source, float* out, int32_t* largest_edge) {
  const auto launch = [&](auto task) {
    queue.ForEach(task, input.lists.rows, input.width);
  };
  switch (input.how) {
    case Reduction::kSum:
      return launch(ReduceList<Reduction::kSum>{input, source, out});
    case Reduction::kMean:
      return launch(ReduceList<Reduction::kMean>{input, source, out});
    case Reduction::kWeightedSum:
      return launch(ReduceList<Reduction::kWeightedSum>{input, source, out});
    case Reduction::kMax:
      return launch(MaximizeList{input, source, out, largest_edge});
  }
}

template <Reduction kHow, typename Queue>
void LaunchSumOfRowGradients(Queue& queue, const Aggregation& input,
                             const float* grad, const int32_t* largest_edge,
                             float* source_grad) {
  const EdgesBySource edges = GroupBySource(queue, input.lists, input.sources);
  queue.ForEach(
      SumOfRowGradients<kHow>{input, edges, grad, largest_edge, source_grad},
      input.sources, input.width);
}

template <typename Queue>
void LaunchAggregateBackward(Queue& queue, const Aggregation& input,
                             const float* grad, const int32_t* largest_edge,
                             float* source_grad) {
  const auto launch = [&]<Reduction kHow>() {
    LaunchSumOfRowGradients<kHow>(queue, input, grad, largest_edge,
                                  source_grad);
  };
  switch (input.how) {
    case Reduction::kSum:
      return launch.template operator()<Reduction::kSum>();
    case Reduction::kMean:
      return launch.template operator()<Reduction::kMean>();
    case Reduction::kWeightedSum:
      return launch.template operator()<Reduction::kWeightedSum>();
    case Reduction::kMax:
      return launch.template operator()<Reduction::kMax>();
  }
}

}  // namespace millrace::cuda::layers
