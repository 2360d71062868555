// SPDX-License-Identifier: Apache-2.0
// How the CPU's kernels divide their work among the threads of LibTorch.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

#include "client/nn/operators/attention_math.h"

namespace millrace {

inline constexpr int64_t kGrainRows = 64;  // rows that are worth a thread

// Calls `each(row)` for all rows.
template <typename Each>
void ForEachRow(int64_t rows, Each&& each) {
  at::parallel_for(0, rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(i);
  });
}

// Calls `each(source, edge, row)` for all edges. One thread has all edges of a
// source, in ascending order.
template <typename Each>
void ForEachEdgeBySource(const EdgesBySource& edges, Each&& each) {
  const auto sources = static_cast<int64_t>(edges.begin.size()) - 1;
  ForEachRow(sources, [&](int64_t source) {
    for (int32_t k = edges.begin[source]; k < edges.begin[source + 1]; ++k) {
      const int32_t edge = edges.edge[k];
      each(source, edge, edges.row[edge]);
    }
  });
}

}  // namespace millrace
