// SPDX-License-Identifier: Apache-2.0
// Sums over neighbour lists, the one costly step of a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

// The neighbour lists that one layer reads: row r of the result draws on rows
// index[indptr[r]] .. index[indptr[r + 1] - 1] of a source matrix.
struct Neighbors {
  at::Tensor indptr;  // [rows + 1] kInt (or kLong, as `index`)
  at::Tensor index;   // [e] kInt (or kLong, but for attention)
  // Coefficients of models that weigh neighbours; else undefined.
  at::Tensor edge_weight;  // [e] float
  at::Tensor self_weight;  // [rows] float

  int64_t rows() const { return indptr.size(0) - 1; }
};

// The lists of the first `rows` rows; rows past the end of `all` have empty
// lists (nodes that were not expanded). Weights are cut alike.
Neighbors FirstRows(const Neighbors& all, int64_t rows);

// The lists of graphs in which node i is row i of both sides, with each
// node's own loops replaced by one, the last of its list.
Neighbors WithSelfLoops(const Neighbors& lists);

enum class Aggregation { kMean, kSum, kMax };

// [rows, d]: the mean, sum or elementwise maximum of each row's neighbours, 0
// for an empty list.
at::Tensor Aggregate(Aggregation how, const at::Tensor& source,
                     const Neighbors& neighbors);
inline at::Tensor MeanOfNeighbors(const at::Tensor& source,
                                  const Neighbors& neighbors) {
  return Aggregate(Aggregation::kMean, source, neighbors);
}

// [rows, d]: the sum of each row's neighbours times edge_weight.
at::Tensor WeightedSumOfNeighbors(const at::Tensor& source,
                                  const Neighbors& neighbors);

// How GCN weighs; see GcnWeights.
enum class GcnNorm { kFull, kSampled };

// Fills edge_weight and self_weight of `lists` over `rows` nodes, node i
// being row i of both sides.
// kFull: true degrees `degree` ([rows] kInt) make a sampled list an unbiased
// estimate of the whole one: edge (deg_i / k_i) / sqrt((deg_i + 1)
// (deg_j + 1)), self 1 / (deg_i + 1), k_i picks.
// kSampled: PyG's gcn_norm of the subgraph: one self loop per node in place
// of its own, degrees those of the subgraph; `degree` is not read.
void GcnWeights(GcnNorm norm, int64_t rows, const at::Tensor& degree,
                Neighbors& lists);

}  // namespace millrace
