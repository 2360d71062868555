// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "client/nn/operators/attention_math.h"
#include "client/nn/operators/cpu_kernels.h"
#include "client/nn/operators/parallel_rows.h"

namespace millrace::operators::cpu {
namespace {

// Raw pointers to the lists and matrices that both passes read.
struct AttentionViews {
  AttentionViews(const at::Tensor& indptr_tensor,
                 const at::Tensor& index_tensor,
                 const at::Tensor& values_tensor,
                 const at::Tensor& source_score_tensor,
                 const at::Tensor& target_score_tensor,
                 const at::Tensor& mask_tensor)
      : rows(indptr_tensor.size(0) - 1),
        sources(values_tensor.size(0)),
        heads(source_score_tensor.size(1)),
        width(values_tensor.size(1)),
        indptr(indptr_tensor.const_data_ptr<int32_t>()),
        index(index_tensor.const_data_ptr<int32_t>()),
        values(values_tensor.const_data_ptr<float>()),
        source_score(source_score_tensor.const_data_ptr<float>()),
        target_score(target_score_tensor.const_data_ptr<float>()),
        mask(mask_tensor.numel() > 0 ? mask_tensor.const_data_ptr<float>()
                                     : nullptr) {}

  float score(int64_t row, int32_t edge, int64_t head) const {
    return source_score[index[edge] * heads + head] +
           target_score[row * heads + head];
  }
  float factor(int64_t cell) const {
    return mask == nullptr ? 1.0f : mask[cell];
  }

  const int64_t rows, sources, heads, width;
  const int32_t* const indptr;
  const int32_t* const index;
  const float* const values;
  const float* const source_score;
  const float* const target_score;
  const float* const mask;
};

// Writes weights[e, head] for the list of one row.
void WriteWeights(const AttentionViews& views, int64_t row, int64_t head,
                  float* weights) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int32_t e = begin; e < end; ++e) {
    weights[e * views.heads + head] = LeakyRelu(views.score(row, e, head));
  }
  Softmax(begin, end, views.heads, weights + head);
}

// Gradients of one row's scores, given that row's `grad` [H, C].
void SoftmaxBackward(const AttentionViews& views, int64_t row,
                     const float* weights, const float* grad, float* edge_score,
                     float* target_score) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int64_t head = 0; head < views.heads; ++head) {
    float mean = 0;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      edge_score[cell] =
          views.factor(cell) * Dot(grad + head * views.width,
                                   views.values + views.index[e] * views.width,
                                   views.width);
      mean += weights[cell] * edge_score[cell];
    }
    float total = 0;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      const float slope = LeakyReluSlope(views.score(row, e, head));
      edge_score[cell] = slope * weights[cell] * (edge_score[cell] - mean);
      total += edge_score[cell];
    }
    target_score[row * views.heads + head] = total;
  }
}

void SumRow(const AttentionViews& views, int64_t row, float* weights,
            float* sums) {
  for (int64_t head = 0; head < views.heads; ++head) {
    WriteWeights(views, row, head, weights);
  }
  float* out = sums + row * views.heads * views.width;
  for (int32_t e = views.indptr[row]; e < views.indptr[row + 1]; ++e) {
    const float* value = views.values + views.index[e] * views.width;
    for (int64_t head = 0; head < views.heads; ++head) {
      const int64_t cell = e * views.heads + head;
      AddScaled(weights[cell] * views.factor(cell), value, views.width,
                out + head * views.width);
    }
  }
}

// Adds edge e's part of the gradients of its source; `grad` is that of its
// row. `values` is null if its gradient is not needed.
void AddEdge(const AttentionViews& views, int32_t e, const float* grad,
             const float* weights, const float* edge_score, float* source_score,
             float* values) {
  const int64_t j = views.index[e];
  for (int64_t head = 0; head < views.heads; ++head) {
    const int64_t cell = e * views.heads + head;
    source_score[j * views.heads + head] += edge_score[cell];
    if (values == nullptr) continue;
    AddScaled(weights[cell] * views.factor(cell), grad + head * views.width,
              views.width, values + j * views.width);
  }
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> Attend(const at::Tensor& values,
                                          const at::Tensor& source_score,
                                          const at::Tensor& target_score,
                                          const at::Tensor& indptr,
                                          const at::Tensor& index,
                                          const at::Tensor& mask) {
  const AttentionViews views(indptr, index, values, source_score, target_score,
                             mask);
  const at::Tensor weights =
      at::empty({index.size(0), views.heads}, at::kFloat);
  const at::Tensor out =
      at::zeros({views.rows, views.heads, views.width}, at::kFloat);
  auto* weight = weights.mutable_data_ptr<float>();
  auto* sums = out.mutable_data_ptr<float>();
  ForEachRow(views.rows,
             [&](int64_t row) { SumRow(views, row, weight, sums); });
  return {out, weights};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendBackward(
    const at::Tensor& grad_out, const at::Tensor& values,
    const at::Tensor& source_score, const at::Tensor& target_score,
    const at::Tensor& indptr, const at::Tensor& index, const at::Tensor& mask,
    const at::Tensor& weights, bool needs_values) {
  const AttentionViews views(indptr, index, values, source_score, target_score,
                             mask);
  const auto* grad = grad_out.const_data_ptr<float>();
  const auto* weight = weights.const_data_ptr<float>();
  const at::Tensor edge_score = at::empty_like(weights);
  const at::Tensor target_grad = at::empty_like(target_score);
  auto* edge = edge_score.mutable_data_ptr<float>();
  auto* target = target_grad.mutable_data_ptr<float>();
  const int64_t row_size = views.heads * views.width;
  ForEachRow(views.rows, [&](int64_t row) {
    SoftmaxBackward(views, row, weight, grad + row * row_size, edge, target);
  });
  const at::Tensor source_grad = at::zeros(source_score.sizes(), at::kFloat);
  const at::Tensor value_grad = needs_values
                                    ? at::zeros(values.sizes(), at::kFloat)
                                    : at::empty({0}, at::kFloat);
  auto* source = source_grad.mutable_data_ptr<float>();
  auto* value = needs_values ? value_grad.mutable_data_ptr<float>() : nullptr;
  ForEachEdgeBySource(
      EdgesBySource(views.indptr, views.index, views.rows, views.sources),
      [&](int64_t, int32_t e, int64_t row) {
        AddEdge(views, e, grad + row * row_size, weight, edge, source, value);
      });
  return {value_grad, source_grad, target_grad};
}

}  // namespace millrace::operators::cpu
