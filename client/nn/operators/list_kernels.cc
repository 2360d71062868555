// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "client/nn/operators/cpu_kernels.h"

namespace millrace::operators::cpu {
namespace {

struct Lists {
  Lists(const at::Tensor& indptr_tensor, const at::Tensor& index_tensor)
      : indptr(indptr_tensor.const_data_ptr<int32_t>()),
        index(index_tensor.const_data_ptr<int32_t>()),
        rows(indptr_tensor.size(0) - 1) {}

  const int32_t* const indptr;
  const int32_t* const index;
  const int64_t rows;
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> SelfLoops(const at::Tensor& indptr,
                                             const at::Tensor& index) {
  const Lists lists(indptr, index);
  const at::Tensor looped_indptr = at::empty({lists.rows + 1}, at::kInt);
  const at::Tensor looped_index =
      at::empty({index.size(0) + lists.rows}, at::kInt);
  auto* out_indptr = looped_indptr.mutable_data_ptr<int32_t>();
  auto* const begin = looped_index.mutable_data_ptr<int32_t>();
  int32_t* out = begin;
  out_indptr[0] = 0;
  for (int64_t i = 0; i < lists.rows; ++i) {
    const auto own = static_cast<int32_t>(i);
    out = std::remove_copy(lists.index + lists.indptr[i],
                           lists.index + lists.indptr[i + 1], out, own);
    *out++ = own;
    out_indptr[i + 1] = static_cast<int32_t>(out - begin);
  }
  return {looped_indptr, looped_index.narrow(0, 0, out - begin)};
}

std::tuple<at::Tensor, at::Tensor> FullGcnWeights(const at::Tensor& indptr,
                                                  const at::Tensor& index,
                                                  const at::Tensor& degree) {
  const Lists lists(indptr, index);
  const int64_t nodes = degree.size(0);
  const auto* degrees = degree.const_data_ptr<int32_t>();
  const at::Tensor edge_weight = at::empty({index.size(0)}, at::kFloat);
  const at::Tensor self_weight = at::empty({nodes}, at::kFloat);
  auto* edge = edge_weight.mutable_data_ptr<float>();
  auto* self = self_weight.mutable_data_ptr<float>();
  std::vector<float> inverse_root(nodes);
  for (int64_t i = 0; i < nodes; ++i) {
    const double plus_one = static_cast<double>(degrees[i]) + 1.0;
    inverse_root[i] = static_cast<float>(1.0 / std::sqrt(plus_one));
    self[i] = static_cast<float>(1.0 / plus_one);
  }
  for (int64_t i = 0; i < lists.rows; ++i) {
    const int32_t begin = lists.indptr[i];
    const int32_t end = lists.indptr[i + 1];
    if (begin == end) continue;
    const float scale =
        static_cast<float>(static_cast<double>(degrees[i]) / (end - begin)) *
        inverse_root[i];
    for (int32_t e = begin; e < end; ++e) {
      edge[e] = scale * inverse_root[lists.index[e]];
    }
  }
  return {edge_weight, self_weight};
}

std::tuple<at::Tensor, at::Tensor> SampledGcnWeights(const at::Tensor& indptr,
                                                     const at::Tensor& index,
                                                     int64_t rows) {
  const Lists lists(indptr, index);
  const at::Tensor edge_weight = at::empty({index.size(0)}, at::kFloat);
  const at::Tensor self_weight = at::empty({rows}, at::kFloat);
  auto* edge = edge_weight.mutable_data_ptr<float>();
  auto* self = self_weight.mutable_data_ptr<float>();
  std::vector<float> inverse_root(rows, 1.0f);
  for (int64_t i = 0; i < lists.rows; ++i) {
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
  for (int64_t i = 0; i < lists.rows; ++i) {
    for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int32_t j = lists.index[e];
      edge[e] = j == i ? 0.0f : inverse_root[i] * inverse_root[j];
    }
  }
  return {edge_weight, self_weight};
}

}  // namespace millrace::operators::cpu
