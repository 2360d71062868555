// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "client/nn/operators/attention_math.h"
#include "client/nn/operators/cpu_kernels.h"
#include "client/nn/operators/operators.h"
#include "client/nn/operators/parallel_rows.h"

namespace millrace::operators::cpu {
namespace {

struct ReductionViews {
  ReductionViews(const at::Tensor& indptr_tensor,
                 const at::Tensor& index_tensor,
                 const at::Tensor& weight_tensor, int64_t how_code,
                 int64_t columns)
      : how(static_cast<Reduction>(how_code)),
        rows(indptr_tensor.size(0) - 1),
        width(columns),
        indptr(indptr_tensor.const_data_ptr<int32_t>()),
        index(index_tensor.const_data_ptr<int32_t>()),
        weight(how == Reduction::kWeightedSum
                   ? weight_tensor.const_data_ptr<float>()
                   : nullptr) {}

  // The factor of an edge in a row's list; not used for kMax.
  float factor(int64_t row, int32_t edge) const {
    if (weight != nullptr) return weight[edge];
    if (how == Reduction::kSum) return 1.0f;
    return 1.0f / static_cast<float>(indptr[row + 1] - indptr[row]);
  }

  const Reduction how;
  const int64_t rows, width;
  const int32_t* const indptr;
  const int32_t* const index;
  const float* const weight;
};

void AddRow(const ReductionViews& views, int64_t row, const float* source,
            float* out) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  const bool mean = views.how == Reduction::kMean;
  for (int32_t e = begin; e < end; ++e) {
    AddScaled(mean ? 1.0f : views.factor(row, e),
              source + views.index[e] * views.width, views.width, out);
  }
  if (!mean || begin == end) return;
  for (int64_t d = 0; d < views.width; ++d) {
    out[d] /= static_cast<float>(end - begin);
  }
}

void TakeLargest(const ReductionViews& views, int64_t row, const float* source,
                 float* out, int32_t* largest) {
  for (int32_t e = views.indptr[row]; e < views.indptr[row + 1]; ++e) {
    const float* values = source + views.index[e] * views.width;
    for (int64_t d = 0; d < views.width; ++d) {
      if (largest[d] >= 0 && !(values[d] > out[d])) continue;
      out[d] = values[d];
      largest[d] = e;
    }
  }
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> ReduceLists(const at::Tensor& source,
                                               const at::Tensor& indptr,
                                               const at::Tensor& index,
                                               const at::Tensor& weight,
                                               int64_t how) {
  const ReductionViews views(indptr, index, weight, how, source.size(1));
  const bool max = views.how == Reduction::kMax;
  const at::Tensor out = at::zeros({views.rows, views.width}, at::kFloat);
  const at::Tensor largest =
      at::full({max ? views.rows : 0, views.width}, -1, at::kInt);
  const auto* values = source.const_data_ptr<float>();
  auto* sums = out.mutable_data_ptr<float>();
  auto* edges = largest.mutable_data_ptr<int32_t>();
  ForEachRow(views.rows, [&](int64_t row) {
    float* sum = sums + row * views.width;
    if (max) {
      TakeLargest(views, row, values, sum, edges + row * views.width);
    } else {
      AddRow(views, row, values, sum);
    }
  });
  return {out, largest};
}

at::Tensor ReduceListsBackward(const at::Tensor& grad, int64_t sources,
                               const at::Tensor& indptr,
                               const at::Tensor& index,
                               const at::Tensor& weight,
                               const at::Tensor& largest, int64_t how) {
  const ReductionViews views(indptr, index, weight, how, grad.size(1));
  const bool max = views.how == Reduction::kMax;
  const at::Tensor source_grad = at::zeros({sources, views.width}, at::kFloat);
  const auto* grads = grad.const_data_ptr<float>();
  const auto* edges = largest.const_data_ptr<int32_t>();
  auto* out = source_grad.mutable_data_ptr<float>();
  const auto add_edge = [&](int64_t source, int32_t e, int64_t row) {
    const float* values = grads + row * views.width;
    float* sums = out + source * views.width;
    if (!max) {
      return AddScaled(views.factor(row, e), values, views.width, sums);
    }
    for (int64_t d = 0; d < views.width; ++d) {
      if (edges[row * views.width + d] == e) sums[d] += values[d];
    }
  };
  ForEachEdgeBySource(
      EdgesBySource(views.indptr, views.index, views.rows, sources), add_edge);
  return source_grad;
}

}  // namespace millrace::operators::cpu
