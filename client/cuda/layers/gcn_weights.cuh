// SPDX-License-Identifier: Apache-2.0
// The weights of GCN, in the arithmetic of the CPU's operator: roots and
// quotients in double, products in float.
#pragma once

#include <cmath>
#include <cstdint>

#include "client/cuda/layers/list_range.cuh"
#include "client/cuda/layers/self_loops.cuh"

namespace millrace::cuda::layers {

// A thread for each node.
struct WriteFullRoots {
  const int32_t* degree;
  float* inverse_root;
  float* self;

  __device__ void operator()(int64_t node, int64_t) const {
    const double plus_one = static_cast<double>(degree[node]) + 1.0;
    inverse_root[node] = static_cast<float>(1.0 / std::sqrt(plus_one));
    self[node] = static_cast<float>(1.0 / plus_one);
  }
};

// A warp for each row.
struct WriteFullWeights {
  LayerLists lists;
  const int32_t* degree;
  const float* inverse_root;
  float* edge;

  __device__ void operator()(int64_t row, int64_t, unsigned lane) const {
    const ListRange list = RangeOf(lists.indptr, row);
    if (list.begin == list.end) return;
    const auto count = static_cast<double>(list.end - list.begin);
    const float scale =
        static_cast<float>(static_cast<double>(degree[row]) / count) *
        inverse_root[row];
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      edge[e] = scale * inverse_root[lists.index[e]];
    }
  }
};

// A warp for each node, of which the first have lists.
struct WriteSampledRoots {
  LayerLists lists;
  float* inverse_root;
  float* self;

  __device__ void operator()(int64_t node, int64_t, unsigned lane) const {
    const int64_t others =
        node < lists.rows ? CountOthers(lists, node, lane) : 0;
    if (lane != 0) return;
    const auto root =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(others) + 1.0));
    inverse_root[node] = root;
    self[node] = root * root;
  }
};

// A warp for each row.
struct WriteSampledWeights {
  LayerLists lists;
  const float* inverse_root;
  float* edge;

  __device__ void operator()(int64_t row, int64_t, unsigned lane) const {
    const ListRange list = RangeOf(lists.indptr, row);
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      const int32_t source = lists.index[e];
      edge[e] = source == row ? 0.0f : inverse_root[row] * inverse_root[source];
    }
  }
};

template <typename Queue>
void LaunchFullGcnWeights(Queue& queue, const LayerLists& lists,
                          const int32_t* degree, int64_t nodes,
                          const GcnWeights& weights) {
  auto* roots = queue.template Allocate<float>(nodes);
  queue.ForEach(WriteFullRoots{degree, roots, weights.self}, nodes, 1);
  queue.ForEachByWarp(WriteFullWeights{lists, degree, roots, weights.edge},
                      lists.rows, 1);
}

template <typename Queue>
void LaunchSampledGcnWeights(Queue& queue, const LayerLists& lists,
                             int64_t nodes, const GcnWeights& weights) {
  auto* roots = queue.template Allocate<float>(nodes);
  queue.ForEachByWarp(WriteSampledRoots{lists, roots, weights.self}, nodes, 1);
  queue.ForEachByWarp(WriteSampledWeights{lists, roots, weights.edge},
                      lists.rows, 1);
}

}  // namespace millrace::cuda::layers
