// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/client/cuda/layers/layer_thread_queue.h"
// The kernels need the words of CUDA C++.
#include "client/cuda/layers/attention.cuh"
#include "tests/client/cuda/layers/attention_reference.h"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

using cuda::layers::Attention;

struct GatNumbers {
  GatNumbers(const TestLists& lists, AttentionShape shape)
      : values(RandomFloats(lists.sources * shape.width, 3)),
        source_score(RandomFloats(lists.sources * shape.heads, 4)),
        target_score(RandomFloats(lists.rows() * shape.heads, 5)),
        mask(RandomMask(lists, shape.heads)),
        grad(RandomFloats(lists.rows() * shape.heads * shape.width, 6)) {}

  Attention Input(const TestLists& lists, AttentionShape shape) const {
    return {lists.view(),        lists.sources,
            shape.heads,         shape.width,
            values.data(),       source_score.data(),
            target_score.data(), shape.mask ? mask.data() : nullptr};
  }

  std::vector<float> values, source_score, target_score, mask, grad;
};

struct GatResults {
  std::vector<float> sums, weights, values, source_score, target_score;
};

GatResults AttendBothWays(const TestLists& lists, AttentionShape shape,
                          const GatNumbers& numbers) {
  GatResults results{std::vector<float>(numbers.grad.size(), -77),
                     std::vector<float>(numbers.mask.size(), kUnwrittenWeight),
                     std::vector<float>(numbers.values.size(), -77),
                     std::vector<float>(numbers.source_score.size(), -77),
                     std::vector<float>(numbers.target_score.size(), -77)};
  const Attention input = numbers.Input(lists, shape);
  LayerThreadQueue queue;
  cuda::layers::LaunchAttend(queue, input,
                             {results.sums.data(), results.weights.data()});
  cuda::layers::LaunchAttendBackward(
      queue, input, {numbers.grad.data(), results.weights.data()},
      {results.values.data(), results.source_score.data(),
       results.target_score.data()});
  return results;
}

// All heads carry the same values, and scores are sums.
AttentionReference Reference(const TestLists& lists, AttentionShape shape,
                             const GatNumbers& numbers) {
  AttentionReference reference(lists, shape);
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int64_t j = lists.index[e];
      for (int64_t h = 0; h < shape.heads; ++h) {
        const double raw =
            static_cast<double>(numbers.source_score[j * shape.heads + h]) +
            numbers.target_score[i * shape.heads + h];
        reference.scores[e * shape.heads + h] = raw > 0 ? raw : 0.2 * raw;
        for (int64_t c = 0; c < shape.width; ++c) {
          reference.Value(e, h, c) = numbers.values[j * shape.width + c];
        }
      }
    }
  }
  reference.Compute(numbers.mask, numbers.grad);
  return reference;
}

void ExpectGat(const TestLists& lists, AttentionShape shape) {
  const GatNumbers numbers(lists, shape);
  const AttentionReference reference = Reference(lists, shape, numbers);
  std::vector<double> values(numbers.values.size()),
      source_score(numbers.source_score.size()),
      target_score(numbers.target_score.size());
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const int64_t j = lists.index[e];
      for (int64_t h = 0; h < shape.heads; ++h) {
        const int64_t cell = e * shape.heads + h;
        const double slope = reference.scores[cell] > 0 ? 1 : 0.2;
        const double raw_grad = slope * reference.score_grads[cell];
        source_score[j * shape.heads + h] += raw_grad;
        target_score[i * shape.heads + h] += raw_grad;
        for (int64_t c = 0; c < shape.width; ++c) {
          values[j * shape.width + c] += reference.ValueGrad(i, e, h, c);
        }
      }
    }
  }
  const std::string name = lists.name + shape.name();
  const GatResults results = AttendBothWays(lists, shape, numbers);
  ExpectNear(results.weights, reference.weights, name + ", weights");
  ExpectNear(results.sums, reference.sums, name + ", sums");
  ExpectNear(results.values, values, name + ", values");
  ExpectNear(results.source_score, source_score, name + ", source scores");
  ExpectNear(results.target_score, target_score, name + ", target scores");
}

TEST(AttentionKernelsTest, AttendInOddLists) {
  for (const TestLists& lists : OddLists()) {
    ExpectGat(lists, {.heads = 2, .width = 3, .mask = true});
    ExpectGat(lists, {.heads = 1, .width = 4, .mask = false});
  }
}

TEST(AttentionKernelsTest, AttendWithAnyShape) {
  const TestLists lists = RandomLists(7, 9, 5, 2);
  for (const int64_t heads : {1, 2, 8}) {
    for (const int64_t width : {1, 3, 4, 31, 32, 33, 100}) {
      ExpectGat(lists, {heads, width, /*mask=*/true});
    }
  }
}

TEST(AttentionKernelsTest, DifferencesOfScoresDecide) {
  TestLists lists{.sources = 2};
  lists.Add({0, 1});
  GatNumbers numbers(lists, {1, 1, false});
  // exp() of these would be infinite.
  numbers.source_score = {1000, 1000};
  numbers.target_score = {500};
  EXPECT_EQ(AttendBothWays(lists, {1, 1, false}, numbers).weights,
            (std::vector<float>{0.5f, 0.5f}));
}

TEST(AttentionKernelsTest, GradientsOfValuesAreOptional) {
  const TestLists lists = RandomLists(7, 9, 5, 2);
  const AttentionShape shape = {2, 3, true};
  const GatNumbers numbers(lists, shape);
  const GatResults expected = AttendBothWays(lists, shape, numbers);
  std::vector<float> source_score(numbers.source_score.size()),
      target_score(numbers.target_score.size());
  LayerThreadQueue queue;
  cuda::layers::LaunchAttendBackward(
      queue, numbers.Input(lists, shape),
      {numbers.grad.data(), expected.weights.data()},
      {nullptr, source_score.data(), target_score.data()});
  EXPECT_EQ(source_score, expected.source_score);
  EXPECT_EQ(target_score, expected.target_score);
}

}  // namespace
}  // namespace millrace::testing
