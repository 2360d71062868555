// SPDX-License-Identifier: Apache-2.0
// Aggregation over neighbour lists, the expensive step of a layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace millrace {

// The neighbour lists that one layer reads: row r of the result depends on rows
// index[indptr[r]] .. index[indptr[r + 1] - 1] of a source matrix.
struct Neighbors {
  at::Tensor indptr;  // [rows + 1] kInt (or kLong, as `index`)
  at::Tensor index;   // [e] kInt (or kLong, except for attention)
  // Coefficients for models that weight neighbours; else undefined.
  at::Tensor edge_weight;  // [e] float
  at::Tensor self_weight;  // [rows] float

  // Where lists that are not on the CPU can be cut: their first `rows` rows
  // have so many edges. The numbers of rows rise.
  struct Cut {
    int64_t rows = 0;
    int64_t edges = 0;
  };
  std::vector<Cut> cuts = {};

  int64_t rows() const { return indptr.size(0) - 1; }
};

// The lists of the first `rows` rows; rows past the end of `all` get empty
// lists (nodes that were not expanded). Weights are cut in the same way. Lists
// that are not on the CPU must have a cut there.
Neighbors FirstRows(const Neighbors& all, int64_t rows);

// Returns the lists on `device`, with a cut at each of `offsets`, in ascending
// order, up to their number of rows. On the CPU, returns them as they are. Does
// not wait for copies out of pinned memory.
Neighbors SendTo(at::Device device, const Neighbors& lists,
                 const std::vector<uint32_t>& offsets);

// Returns how many edges the first `rows[i]` rows of lists on a device have.
// Waits for the device's current stream.
std::vector<uint32_t> ReadListEnds(const Neighbors& lists,
                                   const std::vector<uint32_t>& rows);

// Lists of graphs in which node i is row i on both sides. Replaces each node's
// self loops by exactly one, at the end of its list.
Neighbors WithSelfLoops(const Neighbors& lists);

enum class Aggregation { kMean, kSum, kMax };

// [rows, d]: the mean, sum or elementwise maximum over each row's neighbours; 0
// for an empty list.
at::Tensor Aggregate(Aggregation how, const at::Tensor& source,
                     const Neighbors& neighbors);
inline at::Tensor MeanOfNeighbors(const at::Tensor& source,
                                  const Neighbors& neighbors) {
  return Aggregate(Aggregation::kMean, source, neighbors);
}

// [rows, d]: the sum over each row's neighbours, weighted by edge_weight.
at::Tensor WeightedSumOfNeighbors(const at::Tensor& source,
                                  const Neighbors& neighbors);

// The weights used by GCN; see GcnWeights.
enum class GcnNorm { kFull, kSampled };

// Fills edge_weight and self_weight of `lists`, in which node i is row i on
// both sides. k_i is the number of picks for node i.
// kFull: the true degrees `degree` ([rows] kInt) make a sampled list an
// unbiased estimate of the whole list: edges get (deg_i / k_i) / sqrt((deg_i +
// 1) (deg_j + 1)), self loops 1 / (deg_i + 1).
// kSampled: PyG's gcn_norm on the subgraph: one self loop per node replaces the
// node's own, and degrees are those within the subgraph; `degree` is not used.
void GcnWeights(GcnNorm norm, int64_t rows, const at::Tensor& degree,
                Neighbors& lists);

}  // namespace millrace
