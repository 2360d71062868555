// SPDX-License-Identifier: Apache-2.0
// Code shared by the attention kernels. They read lists of neighbours as raw
// arrays: row i's list is the edges indptr[i] to indptr[i + 1] - 1. They keep a
// number per edge and head in arrays [e, H].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace millrace {

inline constexpr float kLeakySlope = 0.2f;

inline float LeakyRelu(float x) { return x > 0 ? x : kLeakySlope * x; }
inline float LeakyReluSlope(float x) { return x > 0 ? 1.0f : kLeakySlope; }

inline void AddScaled(float scale, const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

inline float Dot(const float* x, const float* y, int64_t n) {
  // Four partial sums let the compiler vectorise without reordering.
  float sums[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += x[i + k] * y[i + k];
  }
  for (; i < n; ++i) sums[0] += x[i] * y[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Replaces the scores of edges begin .. end - 1 for one head by their softmax.
// `scores` points at the head's score of edge 0. As in PyG, the largest is
// subtracted first and 1e-16 is added to the denominator.
inline void Softmax(int32_t begin, int32_t end, int64_t heads, float* scores) {
  constexpr float kEpsilon = 1e-16f;
  float largest = -std::numeric_limits<float>::infinity();
  for (int32_t e = begin; e < end; ++e) {
    largest = std::max(largest, scores[e * heads]);
  }
  float sum = 0;
  for (int32_t e = begin; e < end; ++e) {
    scores[e * heads] = std::exp(scores[e * heads] - largest);
    sum += scores[e * heads];
  }
  const float scale = 1.0f / (sum + kEpsilon);
  for (int32_t e = begin; e < end; ++e) scores[e * heads] *= scale;
}

// The edges grouped by source: edge[begin[j]] .. edge[begin[j + 1] - 1] are the
// edges from source j, ascending; row[e] is the row whose list contains edge e.
struct EdgesBySource {
  EdgesBySource(const int32_t* indptr, const int32_t* index, int64_t rows,
                int64_t sources)
      : begin(sources + 1), edge(indptr[rows]), row(edge) {
    for (size_t e = 0; e < edge.size(); ++e) ++begin[index[e] + 1];
    for (int64_t j = 0; j < sources; ++j) begin[j + 1] += begin[j];
    std::vector<int32_t> next(begin.begin(), begin.end() - 1);
    for (int64_t i = 0; i < rows; ++i) {
      for (int32_t e = indptr[i]; e < indptr[i + 1]; ++e) {
        edge[next[index[e]]++] = e;
        row[e] = static_cast<int32_t>(i);
      }
    }
  }

  std::vector<int32_t> begin, edge, row;
};

}  // namespace millrace
