// SPDX-License-Identifier: Apache-2.0
// The attention of GATv2, whose scores are score . LeakyReLU(source + target).
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/cuda/layers/attended_sums.cuh"
#include "client/cuda/layers/edges_by_source.cuh"

namespace millrace::cuda::layers {

// For each edge and head: the score, which the softmax replaces.
struct WriteGatv2Scores {
  AttentionV2 input;
  const int32_t* rows;  // of edges
  float* scores;        // [edges, H]

  __device__ float Part(int64_t edge, int64_t head, unsigned first,
                        unsigned step) const {
    if (edge >= EdgeCount(input.lists)) return 0;
    const int64_t source = input.lists.index[edge];
    const float* x = input.source + (source * input.heads + head) * input.width;
    const float* y =
        input.target + (rows[edge] * input.heads + head) * input.width;
    const float* vector = input.score + head * input.width;
    float sum = 0;
    for (int64_t i = first; i < input.width; i += step) {
      sum += vector[i] * LeakyRelu(x[i] + y[i]);
    }
    return sum;
  }
  __device__ void Write(int64_t edge, int64_t head, float sum) const {
    if (edge >= EdgeCount(input.lists)) return;
    scores[edge * input.heads + head] = sum;
  }
};

struct Gatv2Scores {
  const float* scores;
  int64_t heads;
  __device__ float operator()(int64_t, int64_t edge, int64_t head) const {
    return scores[edge * heads + head];
  }
};
struct Gatv2Slopes {
  __device__ float operator()(int64_t, int64_t, int64_t) const { return 1.0f; }
};

// A thread for each cell of [rows, H * C]: adds up over the row's list the
// gradients of the row's projection, and its part of those of the vectors.
struct SumOfTargetGradients {
  AttentionV2 input;
  const float* edge_scores;  // [edges, H]: their gradients
  float* target;             // [rows, H, C]
  float* score_parts;        // [rows, H, C]

  __device__ void operator()(int64_t row, int64_t column) const {
    const int64_t columns = input.heads * input.width;
    const int64_t head = column / input.width;
    const ListRange list = RangeOf(input.lists.indptr, row);
    const float own = input.target[row * columns + column];
    const float vector = input.score[column];
    float target_sum = 0, score_sum = 0;
    MILLRACE_UNROLL
    for (int64_t e = list.begin; e < list.end; ++e) {
      const float gradient = edge_scores[e * input.heads + head];
      const float x =
          input.source[input.lists.index[e] * columns + column] + own;
      target_sum += gradient * vector * LeakyReluSlope(x);
      score_sum += gradient * LeakyRelu(x);
    }
    target[row * columns + column] = target_sum;
    score_parts[row * columns + column] = score_sum;
  }
};

// A thread for each cell of [sources, H * C]: adds up gradients of the source's
// projection, which both the sums and the scores read.
struct SumOfSourceGradients {
  AttentionV2 input;
  EdgesBySource edges;
  AttendedGradient grad;
  const float* edge_scores;  // [edges, H]: their gradients
  float* out;

  __device__ void operator()(int64_t source, int64_t column) const {
    const int64_t columns = input.heads * input.width;
    const int64_t head = column / input.width;
    const ListRange range = RangeOf(edges.begin, source);
    const float own = input.source[source * columns + column];
    const float vector = input.score[column];
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t k = range.begin; k < range.end; ++k) {
      const int64_t cell = edges.edge[k] * input.heads + head;
      const int64_t row_cell = edges.row[k] * columns + column;
      sum +=
          grad.weights[cell] * FactorOf(input.mask, cell) * grad.sums[row_cell];
      sum += edge_scores[cell] * vector *
             LeakyReluSlope(own + input.target[row_cell]);
    }
    out[source * columns + column] = sum;
  }
};

// A thread for each cell of [chunks, columns]: adds up the rows of a chunk.
struct SumOfRows {
  static constexpr int64_t kChunk = 64;

  const float* from;  // [rows, columns]
  int64_t rows;
  int64_t columns;
  float* to;

  __device__ void operator()(int64_t chunk, int64_t column) const {
    const int64_t begin = chunk * kChunk;
    const int64_t end = begin + kChunk < rows ? begin + kChunk : rows;
    float sum = 0;
    MILLRACE_UNROLL
    for (int64_t i = begin; i < end; ++i) sum += from[i * columns + column];
    to[chunk * columns + column] = sum;
  }
};

// Writes the sum of all rows to to[columns]: of chunks of rows, then of chunks
// of these sums, and so on.
template <typename Queue>
void LaunchSumOfRows(Queue& queue, const float* from, int64_t rows,
                     int64_t columns, float* to) {
  while (true) {
    const int64_t chunks = std::max<int64_t>(
        1, (rows + SumOfRows::kChunk - 1) / SumOfRows::kChunk);
    float* sums =
        chunks == 1 ? to : queue.template Allocate<float>(chunks * columns);
    queue.ForEach(SumOfRows{from, rows, columns, sums}, chunks, columns);
    if (chunks == 1) return;
    from = sums;
    rows = chunks;
  }
}

inline EdgeValues ValuesOf(const AttentionV2& input) {
  return {input.lists, input.heads, input.width,
          /*stride=*/input.heads * input.width, input.source};
}

template <typename Queue>
void LaunchAttendV2(Queue& queue, const AttentionV2& input,
                    const Attended& out) {
  const LayerLists& lists = input.lists;
  const int32_t* rows = LaunchFindRows(queue, lists);
  queue.SumForEach(WriteGatv2Scores{input, rows, out.weights}, lists.edges,
                   input.heads, LaneBits(input.width));
  queue.ForEachByWarp(
      WriteSoftmax<Gatv2Scores>{
          lists, input.heads, {out.weights, input.heads}, out.weights},
      lists.rows, input.heads);
  queue.ForEach(SumOfAttended{ValuesOf(input), input.mask, out}, lists.rows,
                input.heads * input.width);
}

template <typename Queue>
void LaunchAttendV2Backward(Queue& queue, const AttentionV2& input,
                            const AttendedGradient& grad,
                            const AttentionV2Gradients& out) {
  const LayerLists& lists = input.lists;
  const int64_t columns = input.heads * input.width;
  const int32_t* rows = LaunchFindRows(queue, lists);
  auto* edge_scores = queue.template Allocate<float>(lists.edges * input.heads);
  auto* score_parts = queue.template Allocate<float>(lists.rows * columns);
  queue.SumForEach(WriteWeightGradients{ValuesOf(input), input.mask, rows,
                                        grad.sums, edge_scores},
                   lists.edges, input.heads, LaneBits(input.width));
  queue.ForEachByWarp(
      WriteScoreGradients<Gatv2Slopes>{
          lists, input.heads, grad.weights, {}, edge_scores, nullptr},
      lists.rows, input.heads);
  queue.ForEach(
      SumOfTargetGradients{input, edge_scores, out.target, score_parts},
      lists.rows, columns);
  LaunchSumOfRows(queue, score_parts, lists.rows, columns, out.score);
  const EdgesBySource edges = GroupBySource(queue, lists, input.sources);
  queue.ForEach(
      SumOfSourceGradients{input, edges, grad, edge_scores, out.source},
      input.sources, columns);
}

}  // namespace millrace::cuda::layers
