// SPDX-License-Identifier: Apache-2.0
// Attention in double precision, given scores and what edges carry.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {

struct AttentionShape {
  std::string name() const {
    return ", " + std::to_string(heads) + " x " + std::to_string(width);
  }

  int64_t heads = 1, width = 1;
  bool mask = false;
};

// Weights of edges that belong to no list.
inline constexpr float kUnwrittenWeight = -77;

// [edges, heads]: some factors are 0.
inline std::vector<float> RandomMask(const TestLists& lists, int64_t heads) {
  std::vector<float> mask =
      RandomFloats(static_cast<int64_t>(lists.index.size()) * heads, 9);
  for (float& factor : mask) factor = factor < -0.5f ? 0.0f : 1.6f;
  return mask;
}

class AttentionReference {
 public:
  AttentionReference(const TestLists& lists, AttentionShape shape)
      : scores(lists.index.size() * shape.heads),
        weights(scores.size(), kUnwrittenWeight),
        score_grads(scores.size()),
        sums(lists.rows() * shape.heads * shape.width),
        lists_(lists),
        shape_(shape),
        values_(scores.size() * shape.width) {}

  // What an edge carries.
  double& Value(int64_t edge, int64_t head, int64_t column) {
    return values_[(edge * shape_.heads + head) * shape_.width + column];
  }
  // Computes the rest from scores and values.
  void Compute(const std::vector<float>& mask, const std::vector<float>& grad) {
    mask_ = shape_.mask ? mask : std::vector<float>(mask.size(), 1.0f);
    grad_ = grad;
    for (int64_t row = 0; row < lists_.rows(); ++row) {
      for (int64_t head = 0; head < shape_.heads; ++head) {
        Attend(row, head);
        Differentiate(row, head);
      }
    }
  }
  // The part of the gradient of what an edge carries that the sums have.
  double ValueGrad(int64_t row, int64_t edge, int64_t head,
                   int64_t column) const {
    const int64_t cell = edge * shape_.heads + head;
    return weights[cell] * mask_[cell] *
           grad_[(row * shape_.heads + head) * shape_.width + column];
  }

  std::vector<double> scores;   // [edges, heads]
  std::vector<double> weights;  // [edges, heads]
  std::vector<double> score_grads;
  std::vector<double> sums;  // [rows, heads, width]

 private:
  void Attend(int64_t row, int64_t head) {
    double total = 0;
    for (int64_t e = lists_.indptr[row]; e < lists_.indptr[row + 1]; ++e) {
      total += std::exp(scores[e * shape_.heads + head]);
    }
    for (int64_t e = lists_.indptr[row]; e < lists_.indptr[row + 1]; ++e) {
      const int64_t cell = e * shape_.heads + head;
      weights[cell] = std::exp(scores[cell]) / total;
      for (int64_t c = 0; c < shape_.width; ++c) {
        sums[(row * shape_.heads + head) * shape_.width + c] +=
            weights[cell] * mask_[cell] * Value(e, head, c);
      }
    }
  }
  // By the whole matrix of derivatives of the softmax.
  void Differentiate(int64_t row, int64_t head) {
    for (int64_t e = lists_.indptr[row]; e < lists_.indptr[row + 1]; ++e) {
      const int64_t cell = e * shape_.heads + head;
      double weight_grad = 0;
      for (int64_t c = 0; c < shape_.width; ++c) {
        weight_grad += mask_[cell] * Value(e, head, c) *
                       grad_[(row * shape_.heads + head) * shape_.width + c];
      }
      for (int64_t f = lists_.indptr[row]; f < lists_.indptr[row + 1]; ++f) {
        const int64_t other = f * shape_.heads + head;
        score_grads[other] +=
            weight_grad * weights[cell] * ((e == f ? 1 : 0) - weights[other]);
      }
    }
  }

  const TestLists& lists_;
  const AttentionShape shape_;
  std::vector<double> values_;  // [edges, heads, width]
  std::vector<float> mask_, grad_;
};

}  // namespace millrace::testing
