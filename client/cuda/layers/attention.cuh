// SPDX-License-Identifier: Apache-2.0
// The attention of GAT, whose scores are LeakyReLU(source_score +
// target_score).
#pragma once

#include <cstdint>

#include "client/cuda/layers/attended_sums.cuh"
#include "client/cuda/layers/edges_by_source.cuh"

namespace millrace::cuda::layers {

// The score of an edge before LeakyReLU.
__device__ inline float RawScore(const Attention& input, int64_t row,
                                 int64_t edge, int64_t head) {
  return input.source_score[input.lists.index[edge] * input.heads + head] +
         input.target_score[row * input.heads + head];
}
struct GatScores {
  Attention input;
  __device__ float operator()(int64_t row, int64_t edge, int64_t head) const {
    return LeakyRelu(RawScore(input, row, edge, head));
  }
};
struct GatSlopes {
  Attention input;
  __device__ float operator()(int64_t row, int64_t edge, int64_t head) const {
    return LeakyReluSlope(RawScore(input, row, edge, head));
  }
};

// A thread for each source and head: adds up gradients of its score.
struct SumOfScoreGradients {
  EdgesBySource edges;
  int64_t heads;
  const float* edge_scores;  // [edges, H]: their gradients
  float* source_score;

  __device__ void operator()(int64_t source, int64_t head) const {
    const ListRange range = RangeOf(edges.begin, source);
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t k = range.begin; k < range.end; ++k) {
      sum += edge_scores[edges.edge[k] * heads + head];
    }
    source_score[source * heads + head] = sum;
  }
};

// A thread for each cell of [sources, C]: adds up gradients of its value, for
// each edge those of all heads.
struct SumOfValueGradients {
  Attention input;
  EdgesBySource edges;
  AttendedGradient grad;
  float* values;

  __device__ void operator()(int64_t source, int64_t column) const {
    const ListRange range = RangeOf(edges.begin, source);
    float sum = 0;
    for (int64_t k = range.begin; k < range.end; ++k) {
      const int64_t edge_cell = edges.edge[k] * input.heads;
      const int64_t row_cell = edges.row[k] * input.heads;
      MILLRACE_UNROLL
      for (int64_t head = 0; head < input.heads; ++head) {
        const int64_t cell = edge_cell + head;
        sum += grad.weights[cell] * FactorOf(input.mask, cell) *
               grad.sums[(row_cell + head) * input.width + column];
      }
    }
    values[source * input.width + column] = sum;
  }
};

inline EdgeValues ValuesOf(const Attention& input) {
  return {input.lists, input.heads, input.width, /*stride=*/input.width,
          input.values};
}

template <typename Queue>
void LaunchAttend(Queue& queue, const Attention& input, const Attended& out) {
  queue.ForEachByWarp(
      WriteSoftmax<GatScores>{input.lists, input.heads, {input}, out.weights},
      input.lists.rows, input.heads);
  queue.ForEach(SumOfAttended{ValuesOf(input), input.mask, out},
                input.lists.rows, input.heads * input.width);
}

template <typename Queue>
void LaunchAttendBackward(Queue& queue, const Attention& input,
                          const AttendedGradient& grad,
                          const AttentionGradients& out) {
  const LayerLists& lists = input.lists;
  const int32_t* rows = LaunchFindRows(queue, lists);
  auto* edge_scores = queue.template Allocate<float>(lists.edges * input.heads);
  queue.SumForEach(WriteWeightGradients{ValuesOf(input), input.mask, rows,
                                        grad.sums, edge_scores},
                   lists.edges, input.heads, LaneBits(input.width));
  queue.ForEachByWarp(WriteScoreGradients<GatSlopes>{lists,
                                                     input.heads,
                                                     grad.weights,
                                                     {input},
                                                     edge_scores,
                                                     out.target_score},
                      lists.rows, input.heads);
  const EdgesBySource edges = GroupBySource(queue, lists, input.sources);
  queue.ForEach(
      SumOfScoreGradients{edges, input.heads, edge_scores, out.source_score},
      input.sources, input.heads);
  if (out.values == nullptr) return;
  queue.ForEach(SumOfValueGradients{input, edges, grad, out.values},
                input.sources, input.width);
}

}  // namespace millrace::cuda::layers
