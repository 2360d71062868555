// SPDX-License-Identifier: Apache-2.0
// The softmax of scores over each row's list, and its backward pass. Both keep
// a number for each edge and head in arrays [edges, H].
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "client/cuda/layers/list_range.cuh"

namespace millrace::cuda::layers {

inline constexpr float kLeakySlope = 0.2f;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

__device__ inline float LeakyRelu(float x) {
  return x > 0 ? x : kLeakySlope * x;
}
__device__ inline float LeakyReluSlope(float x) {
  return x > 0 ? 1.0f : kLeakySlope;
}

// The factor of a weight; 1 without a mask.
__device__ inline float FactorOf(const float* mask, int64_t cell) {
  return mask == nullptr ? 1.0f : mask[cell];
}

// A warp for each row and head, in which a lane always has the same edges of
// the list. Weights are the softmax of scores(row, edge, head). As in PyG, the
// largest score is subtracted first and 1e-16 is added to the denominator.
template <typename Scores>
struct WriteSoftmax {
  LayerLists lists;
  int64_t heads;
  Scores scores;
  float* weights;

  __device__ void operator()(int64_t row, int64_t head, unsigned lane) const {
    constexpr float kEpsilon = 1e-16f;
    const ListRange list = RangeOf(lists.indptr, row);
    if (list.begin == list.end) return;
    float largest = -kInfinity;
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      const float score = scores(row, e, head);
      weights[e * heads + head] = score;
      largest = largest < score ? score : largest;
    }
    largest = MaxOfLanes(largest);
    float sum = 0;
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      float& weight = weights[e * heads + head];
      weight = std::exp(weight - largest);
      sum += weight;
    }
    const float scale = 1.0f / (SumOfLanes(sum) + kEpsilon);
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      weights[e * heads + head] *= scale;
    }
  }
};

// A warp for each row and head, as above: turns the gradients of weights into
// those of scores. `slopes(row, edge, head)` is the derivative of what the
// softmax reads by the score.
template <typename Slopes>
struct WriteScoreGradients {
  LayerLists lists;
  int64_t heads;
  const float* weights;
  Slopes slopes;
  float* gradients;   // of weights, then of scores
  float* row_scores;  // [rows, H]: their sums; null if not wanted

  __device__ void operator()(int64_t row, int64_t head, unsigned lane) const {
    const ListRange list = RangeOf(lists.indptr, row);
    float mean = 0;
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      const int64_t cell = e * heads + head;
      mean += weights[cell] * gradients[cell];
    }
    mean = SumOfLanes(mean);
    float total = 0;
    for (int64_t e = list.begin + lane; e < list.end; e += kWarp) {
      const int64_t cell = e * heads + head;
      gradients[cell] =
          slopes(row, e, head) * weights[cell] * (gradients[cell] - mean);
      total += gradients[cell];
    }
    if (row_scores == nullptr) return;
    total = SumOfLanes(total);
    if (lane == 0) row_scores[row * heads + head] = total;
  }
};

}  // namespace millrace::cuda::layers
