// SPDX-License-Identifier: Apache-2.0
#include "client/nn/aggregate.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace millrace {
namespace {

// Codes of embedding_bag's modes.
constexpr int64_t kBagSum = 0;
constexpr int64_t kBagMean = 1;
constexpr int64_t kBagMax = 2;

// embedding_bag reads CSR lists directly and is 10 times as fast as gather and
// index_add, both forward and backward.
at::Tensor Bag(const at::Tensor& source, const Neighbors& neighbors,
               int64_t mode, const std::optional<at::Tensor>& weights) {
  if (neighbors.index.size(0) == 0) {
    return at::zeros({neighbors.rows(), source.size(1)}, at::kFloat);
  }
  return std::get<0>(at::embedding_bag(
      source, neighbors.index, neighbors.indptr,
      /*scale_grad_by_freq=*/false, mode, /*sparse=*/false, weights,
      /*include_last_offset=*/true));
}

struct Lists {
  const int32_t* indptr;
  const int32_t* index;
  int64_t expanded;
};

void FullWeights(const Lists& lists, int64_t rows, const int32_t* degree,
                 float* edge, float* self) {
  std::vector<float> inverse_root(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const double plus_one = static_cast<double>(degree[i]) + 1.0;
    inverse_root[i] = static_cast<float>(1.0 / std::sqrt(plus_one));
    self[i] = static_cast<float>(1.0 / plus_one);
  }
  for (int64_t i = 0; i < lists.expanded; ++i) {
    const int32_t begin = lists.indptr[i];
    const int32_t end = lists.indptr[i + 1];
    if (begin == end) continue;
    const float scale =
        static_cast<float>(static_cast<double>(degree[i]) / (end - begin)) *
        inverse_root[i];
    for (int32_t e = begin; e < end; ++e) {
      edge[e] = scale * inverse_root[lists.index[e]];
    }
  }
}

void SampledWeights(const Lists& lists, int64_t rows, float* edge,
                    float* self) {
  std::vector<float> inverse_root(rows, 1.0f);
  for (int64_t i = 0; i < lists.expanded; ++i) {
    const int32_t* begin = lists.index + lists.indptr[i];
    const int32_t* end = lists.index + lists.indptr[i + 1];
    const auto others =
        (end - begin) - std::count(begin, end, static_cast<int32_t>(i));
    inverse_root[i] =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(others) + 1.0));
  }
  for (int64_t i = 0; i < rows; ++i) {
    self[i] = inverse_root[i] * inverse_root[i];
  }
  for (int64_t i = 0; i < lists.expanded; ++i) {
    for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int32_t j = lists.index[e];
      edge[e] = j == i ? 0.0f : inverse_root[i] * inverse_root[j];
    }
  }
}

}  // namespace

Neighbors FirstRows(const Neighbors& all, int64_t rows) {
  Neighbors first = all;
  if (all.self_weight.defined()) {
    first.self_weight = all.self_weight.narrow(0, 0, rows);
  }
  if (rows > all.rows()) {
    const at::Tensor end = all.indptr.narrow(0, all.rows(), 1);
    first.indptr = at::cat({all.indptr, end.expand({rows - all.rows()})});
    return first;
  }
  first.indptr = all.indptr.narrow(0, 0, rows + 1);
  const int64_t edges = first.indptr.select(0, rows).item().toLong();
  first.index = all.index.narrow(0, 0, edges);
  if (all.edge_weight.defined()) {
    first.edge_weight = all.edge_weight.narrow(0, 0, edges);
  }
  return first;
}

Neighbors WithSelfLoops(const Neighbors& lists) {
  const int64_t rows = lists.rows();
  const int32_t* indptr = lists.indptr.const_data_ptr<int32_t>();
  const int32_t* index = lists.index.const_data_ptr<int32_t>();
  Neighbors looped;
  looped.indptr = at::empty({rows + 1}, at::kInt);
  looped.index = at::empty({lists.index.size(0) + rows}, at::kInt);
  int32_t* out_indptr = looped.indptr.mutable_data_ptr<int32_t>();
  int32_t* begin = looped.index.mutable_data_ptr<int32_t>();
  int32_t* out = begin;
  out_indptr[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const auto own = static_cast<int32_t>(i);
    out = std::remove_copy(index + indptr[i], index + indptr[i + 1], out, own);
    *out++ = own;
    out_indptr[i + 1] = static_cast<int32_t>(out - begin);
  }
  looped.index = looped.index.narrow(0, 0, out - begin);
  return looped;
}

at::Tensor Aggregate(Aggregation how, const at::Tensor& source,
                     const Neighbors& neighbors) {
  const int64_t mode = how == Aggregation::kMean  ? kBagMean
                       : how == Aggregation::kSum ? kBagSum
                                                  : kBagMax;
  return Bag(source, neighbors, mode, std::nullopt);
}

at::Tensor WeightedSumOfNeighbors(const at::Tensor& source,
                                  const Neighbors& neighbors) {
  return Bag(source, neighbors, kBagSum, neighbors.edge_weight);
}

void GcnWeights(GcnNorm norm, int64_t rows, const at::Tensor& degree,
                Neighbors& neighbors) {
  neighbors.edge_weight = at::empty({neighbors.index.size(0)}, at::kFloat);
  neighbors.self_weight = at::empty({rows}, at::kFloat);
  const Lists lists{neighbors.indptr.const_data_ptr<int32_t>(),
                    neighbors.index.const_data_ptr<int32_t>(),
                    neighbors.rows()};
  float* edge = neighbors.edge_weight.mutable_data_ptr<float>();
  float* self = neighbors.self_weight.mutable_data_ptr<float>();
  if (norm == GcnNorm::kFull) {
    FullWeights(lists, rows, degree.const_data_ptr<int32_t>(), edge, self);
  } else {
    SampledWeights(lists, rows, edge, self);
  }
}

}  // namespace millrace
