// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "client/nn/operators/attention_math.h"
#include "client/nn/operators/cpu_kernels.h"
#include "client/nn/operators/parallel_rows.h"

namespace millrace::operators::cpu {
namespace {

// Raw pointers to the lists and matrices of H heads of C columns each.
struct Gatv2Views {
  Gatv2Views(const at::Tensor& source_tensor, const at::Tensor& target_tensor,
             const at::Tensor& score_tensor, const at::Tensor& indptr_tensor,
             const at::Tensor& index_tensor, const at::Tensor& mask_tensor)
      : rows(indptr_tensor.size(0) - 1),
        sources(source_tensor.size(0)),
        heads(score_tensor.size(1)),
        width(score_tensor.size(2)),
        source(source_tensor.const_data_ptr<float>()),
        target(target_tensor.const_data_ptr<float>()),
        score(score_tensor.const_data_ptr<float>()),
        indptr(indptr_tensor.const_data_ptr<int32_t>()),
        index(index_tensor.const_data_ptr<int32_t>()),
        mask(mask_tensor.numel() > 0 ? mask_tensor.const_data_ptr<float>()
                                     : nullptr) {}

  const float* of_source(int32_t edge, int64_t head) const {
    return source + (index[edge] * heads + head) * width;
  }
  const float* of_target(int64_t row, int64_t head) const {
    return target + (row * heads + head) * width;
  }
  float factor(int64_t cell) const {
    return mask == nullptr ? 1.0f : mask[cell];
  }

  const int64_t rows, sources, heads, width;
  const float* const source;  // [sources, H, C]
  const float* const target;  // [rows, H, C]
  const float* const score;   // [1, H, C]
  const int32_t* const indptr;
  const int32_t* const index;
  const float* const mask;  // [e, H]; null if none
};

// The sum over columns of a * LeakyReLU(x + y).
float Score(const float* a, const float* x, const float* y, int64_t n) {
  float sums[4] = {0, 0, 0, 0};  // as in Dot()
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) {
      sums[k] += a[i + k] * LeakyRelu(x[i + k] + y[i + k]);
    }
  }
  for (; i < n; ++i) sums[0] += a[i] * LeakyRelu(x[i] + y[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Adds the gradient of either end's columns that the score's gradient implies.
void AddScoreGradient(float gradient, const float* a, const float* x,
                      const float* y, int64_t n, float* end) {
  for (int64_t i = 0; i < n; ++i) {
    end[i] += gradient * a[i] * LeakyReluSlope(x[i] + y[i]);
  }
}

// Adds the gradient of the attention vector.
void AddVectorGradient(float gradient, const float* x, const float* y,
                       int64_t n, float* vector) {
  for (int64_t i = 0; i < n; ++i)
    vector[i] += gradient * LeakyRelu(x[i] + y[i]);
}

// Writes the attention weights of a row's list and adds up its neighbours.
void AttendRow(const Gatv2Views& views, int64_t row, float* weights,
               float* sums) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int64_t head = 0; head < views.heads; ++head) {
    const float* target = views.of_target(row, head);
    const float* score = views.score + head * views.width;
    for (int32_t e = begin; e < end; ++e) {
      weights[e * views.heads + head] =
          Score(score, views.of_source(e, head), target, views.width);
    }
    Softmax(begin, end, views.heads, weights + head);
    float* sum = sums + (row * views.heads + head) * views.width;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      AddScaled(weights[cell] * views.factor(cell), views.of_source(e, head),
                views.width, sum);
    }
  }
}

// The gradients that a row's sums `grad` [H, C] give to the scores of its list,
// to its own projection and, as the row's part, to the attention vectors.
struct RowGradients {
  float* edge_score;  // [e, H]
  float* target;      // [rows, H, C]
  float* score;       // [rows, H, C]
};
void AttendRowBackward(const Gatv2Views& views, int64_t row,
                       const float* weights, const float* grad,
                       const RowGradients& gradients) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int64_t head = 0; head < views.heads; ++head) {
    const int64_t place = (row * views.heads + head) * views.width;
    float mean = 0;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      gradients.edge_score[cell] =
          views.factor(cell) *
          Dot(grad + place, views.of_source(e, head), views.width);
      mean += weights[cell] * gradients.edge_score[cell];
    }
    const float* target = views.of_target(row, head);
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      float& edge = gradients.edge_score[cell];
      edge = weights[cell] * (edge - mean);
      const float* source = views.of_source(e, head);
      AddScoreGradient(edge, views.score + head * views.width, source, target,
                       views.width, gradients.target + place);
      AddVectorGradient(edge, source, target, views.width,
                        gradients.score + place);
    }
  }
}

// Adds edge e's part of the gradient of its source.
void AddSourceGradient(const Gatv2Views& views, int32_t e, int64_t row,
                       const float* weights, const float* edge_score,
                       const float* grad, float* sources) {
  for (int64_t head = 0; head < views.heads; ++head) {
    const int64_t cell = e * views.heads + head;
    const float* source = views.of_source(e, head);
    float* out = sources + (source - views.source);
    AddScaled(weights[cell] * views.factor(cell),
              grad + (row * views.heads + head) * views.width, views.width,
              out);
    AddScoreGradient(edge_score[cell], views.score + head * views.width, source,
                     views.of_target(row, head), views.width, out);
  }
}

// [1, H, C]: the sum over rows, which LibTorch may split among its threads.
at::Tensor SumOfRows(const Gatv2Views& views, const float* rows) {
  at::Tensor sum = at::zeros({1, views.heads, views.width}, at::kFloat);
  const int64_t size = views.heads * views.width;
  for (int64_t i = 0; i < views.rows; ++i) {
    AddScaled(1.0f, rows + i * size, size, sum.mutable_data_ptr<float>());
  }
  return sum;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> AttendV2(
    const at::Tensor& source, const at::Tensor& target, const at::Tensor& score,
    const at::Tensor& indptr, const at::Tensor& index, const at::Tensor& mask) {
  const Gatv2Views views(source, target, score, indptr, index, mask);
  const at::Tensor weights =
      at::empty({index.size(0), views.heads}, at::kFloat);
  const at::Tensor out =
      at::zeros({views.rows, views.heads, views.width}, at::kFloat);
  auto* weight = weights.mutable_data_ptr<float>();
  auto* sums = out.mutable_data_ptr<float>();
  ForEachRow(views.rows,
             [&](int64_t row) { AttendRow(views, row, weight, sums); });
  return {out, weights};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendV2Backward(
    const at::Tensor& grad_out, const at::Tensor& source,
    const at::Tensor& target, const at::Tensor& score, const at::Tensor& indptr,
    const at::Tensor& index, const at::Tensor& mask,
    const at::Tensor& weights) {
  const Gatv2Views views(source, target, score, indptr, index, mask);
  const auto* grad = grad_out.const_data_ptr<float>();
  const auto* weight = weights.const_data_ptr<float>();
  const at::Tensor edge_score = at::empty(weights.sizes(), at::kFloat);
  const at::Tensor source_grad = at::zeros(source.sizes(), at::kFloat);
  const at::Tensor target_grad = at::zeros(target.sizes(), at::kFloat);
  const at::Tensor row_score = at::zeros(grad_out.sizes(), at::kFloat);
  const RowGradients gradients{edge_score.mutable_data_ptr<float>(),
                               target_grad.mutable_data_ptr<float>(),
                               row_score.mutable_data_ptr<float>()};
  ForEachRow(views.rows, [&](int64_t row) {
    AttendRowBackward(views, row, weight, grad, gradients);
  });
  auto* sources = source_grad.mutable_data_ptr<float>();
  ForEachEdgeBySource(
      EdgesBySource(views.indptr, views.index, views.rows, views.sources),
      [&](int64_t, int32_t e, int64_t row) {
        AddSourceGradient(views, e, row, weight, gradients.edge_score, grad,
                          sources);
      });
  return {source_grad, target_grad, SumOfRows(views, gradients.score)};
}

}  // namespace millrace::operators::cpu
