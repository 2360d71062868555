// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/client/cuda/layers/layer_thread_queue.h"
// The kernels need the words of CUDA C++.
#include "client/cuda/layers/attention_v2.cuh"
#include "tests/client/cuda/layers/attention_reference.h"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

using cuda::layers::AttentionV2;

struct Gatv2Numbers {
  Gatv2Numbers(const TestLists& lists, AttentionShape shape)
      : columns(shape.heads * shape.width),
        source(RandomFloats(lists.sources * columns, 3)),
        target(RandomFloats(lists.rows() * columns, 4)),
        score(RandomFloats(columns, 5)),
        mask(RandomMask(lists, shape.heads)),
        grad(RandomFloats(lists.rows() * columns, 6)) {
    // Wide heads have larger scores, which would leave one weight.
    for (float& factor : score) factor /= static_cast<float>(shape.width);
  }

  // What LeakyReLU reads.
  double Sum(int64_t row, int64_t source_row, int64_t column) const {
    return static_cast<double>(source[source_row * columns + column]) +
           target[row * columns + column];
  }

  int64_t columns;
  std::vector<float> source, target, score, mask, grad;
};

AttentionReference Reference(const TestLists& lists, AttentionShape shape,
                             const Gatv2Numbers& numbers) {
  AttentionReference reference(lists, shape);
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int64_t j = lists.index[e];
      for (int64_t column = 0; column < numbers.columns; ++column) {
        const int64_t h = column / shape.width;
        const double sum = numbers.Sum(i, j, column);
        reference.scores[e * shape.heads + h] +=
            numbers.score[column] * (sum > 0 ? sum : 0.2 * sum);
        reference.Value(e, h, column % shape.width) =
            numbers.source[j * numbers.columns + column];
      }
    }
  }
  reference.Compute(numbers.mask, numbers.grad);
  return reference;
}

struct Gatv2Gradients {
  explicit Gatv2Gradients(const Gatv2Numbers& numbers)
      : source(numbers.source.size()),
        target(numbers.target.size()),
        score(numbers.score.size()) {}

  std::vector<double> source, target, score;
};

Gatv2Gradients Differentiate(const TestLists& lists, AttentionShape shape,
                             const Gatv2Numbers& numbers,
                             const AttentionReference& reference) {
  Gatv2Gradients gradients(numbers);
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int64_t j = lists.index[e];
      for (int64_t column = 0; column < numbers.columns; ++column) {
        const int64_t h = column / shape.width;
        const double sum = numbers.Sum(i, j, column);
        const double score_grad = reference.score_grads[e * shape.heads + h];
        const double sum_grad =
            score_grad * numbers.score[column] * (sum > 0 ? 1 : 0.2);
        gradients.source[j * numbers.columns + column] +=
            sum_grad + reference.ValueGrad(i, e, h, column % shape.width);
        gradients.target[i * numbers.columns + column] += sum_grad;
        gradients.score[column] += score_grad * (sum > 0 ? sum : 0.2 * sum);
      }
    }
  }
  return gradients;
}

void ExpectGatv2(const TestLists& lists, AttentionShape shape) {
  const Gatv2Numbers numbers(lists, shape);
  const AttentionReference reference = Reference(lists, shape, numbers);
  const Gatv2Gradients expected =
      Differentiate(lists, shape, numbers, reference);
  const AttentionV2 input{
      lists.view(),          lists.sources,
      shape.heads,           shape.width,
      numbers.source.data(), numbers.target.data(),
      numbers.score.data(),  shape.mask ? numbers.mask.data() : nullptr};
  std::vector<float> sums(numbers.grad.size(), -77),
      weights(numbers.mask.size(), kUnwrittenWeight),
      source(numbers.source.size(), -77), target(numbers.target.size(), -77),
      score(numbers.score.size(), -77);
  LayerThreadQueue queue;
  cuda::layers::LaunchAttendV2(queue, input, {sums.data(), weights.data()});
  cuda::layers::LaunchAttendV2Backward(
      queue, input, {numbers.grad.data(), weights.data()},
      {source.data(), target.data(), score.data()});
  const std::string name = lists.name + shape.name();
  ExpectNear(weights, reference.weights, name + ", weights");
  ExpectNear(sums, reference.sums, name + ", sums");
  ExpectNear(source, expected.source, name + ", sources");
  ExpectNear(target, expected.target, name + ", targets");
  ExpectNear(score, expected.score, name + ", scores");
}

TEST(AttentionV2KernelsTest, AttendInOddLists) {
  for (const TestLists& lists : OddLists()) {
    ExpectGatv2(lists, {.heads = 2, .width = 3, .mask = true});
    ExpectGatv2(lists, {.heads = 1, .width = 4, .mask = false});
  }
}

TEST(AttentionV2KernelsTest, AttendWithAnyShape) {
  const TestLists lists = RandomLists(7, 9, 5, 2);
  for (const int64_t heads : {1, 2, 8}) {
    for (const int64_t width : {1, 3, 4, 31, 32, 33, 100}) {
      ExpectGatv2(lists, {heads, width, /*mask=*/true});
    }
  }
}

// More rows than are added up at once, and more of their sums.
TEST(AttentionV2KernelsTest, AddUpManyRows) {
  for (const int64_t rows : {0, 1, 64, 65, 4097}) {
    const std::vector<float> from = RandomFloats(rows * 3, 7);
    std::vector<double> expected(3);
    for (int64_t i = 0; i < rows * 3; ++i) expected[i % 3] += from[i];
    std::vector<float> to(3, -77);
    LayerThreadQueue queue;
    cuda::layers::LaunchSumOfRows(queue, from.data(), rows, 3, to.data());
    ExpectNear(to, expected, std::to_string(rows));
  }
}

}  // namespace
}  // namespace millrace::testing
