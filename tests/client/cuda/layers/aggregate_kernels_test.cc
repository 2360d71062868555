// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/client/cuda/layers/layer_thread_queue.h"
// The kernels need the words of CUDA C++.
#include "client/cuda/layers/aggregate.cuh"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

using cuda::layers::Aggregation;
using cuda::layers::Reduction;

struct Numbers {
  Numbers(const TestLists& lists, int64_t width)
      : source(RandomFloats(lists.sources * width, 3)),
        grad(RandomFloats(lists.rows() * width, 4)),
        weight(RandomFloats(static_cast<int64_t>(lists.index.size()), 5)) {}

  std::vector<float> source, grad, weight;
};

struct Results {
  std::vector<float> out, source_grad;
  std::vector<int32_t> largest_edge;
};

Results Aggregate(Reduction how, const TestLists& lists, int64_t width,
                  const Numbers& numbers) {
  const Aggregation input{how, lists.view(), lists.sources, width,
                          numbers.weight.data()};
  Results results{std::vector<float>(numbers.grad.size(), -77),
                  std::vector<float>(numbers.source.size(), -77),
                  std::vector<int32_t>(numbers.grad.size(), -77)};
  LayerThreadQueue queue;
  cuda::layers::LaunchAggregate(queue, input, numbers.source.data(),
                                results.out.data(),
                                results.largest_edge.data());
  cuda::layers::LaunchAggregateBackward(queue, input, numbers.grad.data(),
                                        results.largest_edge.data(),
                                        results.source_grad.data());
  return results;
}

double FactorOfEdge(Reduction how, const TestLists& lists,
                    const Numbers& numbers, int64_t row, int64_t edge) {
  if (how == Reduction::kWeightedSum) return numbers.weight[edge];
  if (how == Reduction::kSum) return 1;
  return 1.0 / (lists.indptr[row + 1] - lists.indptr[row]);
}

void ExpectSums(Reduction how, const TestLists& lists, int64_t width) {
  const Numbers numbers(lists, width);
  std::vector<double> out(numbers.grad.size()),
      source_grad(numbers.source.size());
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
      const double factor = FactorOfEdge(how, lists, numbers, i, e);
      for (int64_t c = 0; c < width; ++c) {
        const int64_t source = lists.index[e] * width + c;
        out[i * width + c] += factor * numbers.source[source];
        source_grad[source] += factor * numbers.grad[i * width + c];
      }
    }
  }
  const Results results = Aggregate(how, lists, width, numbers);
  const std::string name = lists.name + ", width " + std::to_string(width);
  ExpectNear(results.out, out, name, 1e-6);
  ExpectNear(results.source_grad, source_grad, name + ", gradient", 1e-6);
}

constexpr int64_t kWidths[] = {1, 3, 4, 31, 32, 33, 100};

TEST(AggregateKernelsTest, AddUpLists) {
  for (const TestLists& lists : OddLists()) {
    for (const int64_t width : kWidths) {
      for (const Reduction how :
           {Reduction::kSum, Reduction::kMean, Reduction::kWeightedSum}) {
        ExpectSums(how, lists, width);
      }
    }
  }
}

TEST(AggregateKernelsTest, AddInTheOrderOfLists) {
  TestLists lists{.sources = 3};
  lists.Add({0, 1, 2});
  lists.Add({0, 2, 1});
  Numbers numbers(lists, 1);
  numbers.source = {1e8f, 1.0f, -1e8f};
  EXPECT_EQ(Aggregate(Reduction::kSum, lists, 1, numbers).out,
            (std::vector<float>{0, 1}));
}

TEST(AggregateKernelsTest, AddGradientsInTheOrderOfRows) {
  TestLists lists{.sources = 1};
  lists.Add({0});
  lists.Add({0});
  lists.Add({0});
  Numbers numbers(lists, 1);
  numbers.grad = {1e8f, 1.0f, -1e8f};
  EXPECT_EQ(Aggregate(Reduction::kSum, lists, 1, numbers).source_grad[0], 0);
  numbers.grad = {1e8f, -1e8f, 1.0f};
  EXPECT_EQ(Aggregate(Reduction::kSum, lists, 1, numbers).source_grad[0], 1);
}

void ExpectMaxima(const TestLists& lists, int64_t width,
                  const Numbers& numbers) {
  std::vector<float> out(numbers.grad.size());
  std::vector<int32_t> largest_edge(numbers.grad.size(), -1);
  std::vector<double> source_grad(numbers.source.size());
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t c = 0; c < width; ++c) {
      const int64_t cell = i * width + c;
      for (int32_t e = lists.indptr[i + 1] - 1; e >= lists.indptr[i]; --e) {
        const float value = numbers.source[lists.index[e] * width + c];
        if (largest_edge[cell] < 0 || value >= out[cell]) {
          largest_edge[cell] = e;
          out[cell] = value;
        }
      }
      if (largest_edge[cell] < 0) continue;
      source_grad[lists.index[largest_edge[cell]] * width + c] +=
          numbers.grad[cell];
    }
  }
  const Results results = Aggregate(Reduction::kMax, lists, width, numbers);
  EXPECT_EQ(results.out, out) << lists.name << ", width " << width;
  EXPECT_EQ(results.largest_edge, largest_edge) << lists.name;
  ExpectNear(results.source_grad, source_grad, lists.name, 1e-6);
}

TEST(AggregateKernelsTest, FindMaximaAndTheirFirstEdges) {
  for (const TestLists& lists : OddLists()) {
    for (const int64_t width : kWidths) {
      Numbers numbers(lists, width);
      ExpectMaxima(lists, width, numbers);
      // Many sources are equal.
      for (float& value : numbers.source) value = std::floor(value);
      ExpectMaxima(lists, width, numbers);
    }
  }
}

TEST(AggregateKernelsTest, FindMaximaWithoutTheirEdges) {
  const TestLists lists = RandomLists(5, 5, 3, 1);
  const Numbers numbers(lists, 2);
  const Aggregation input{Reduction::kMax, lists.view(), lists.sources, 2,
                          nullptr};
  std::vector<float> out(numbers.grad.size());
  LayerThreadQueue queue;
  cuda::layers::LaunchAggregate(queue, input, numbers.source.data(), out.data(),
                                nullptr);
  EXPECT_EQ(out, Aggregate(Reduction::kMax, lists, 2, numbers).out);
}

TEST(AggregateKernelsTest, MaximaCanBeInfinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  TestLists lists{.sources = 2};
  lists.Add({0});
  lists.Add({0, 1});
  Numbers numbers(lists, 1);
  numbers.source = {-kInfinity, kInfinity};
  const Results results = Aggregate(Reduction::kMax, lists, 1, numbers);
  EXPECT_EQ(results.out, (std::vector<float>{-kInfinity, kInfinity}));
  EXPECT_EQ(results.largest_edge, (std::vector<int32_t>{0, 2}));
}

}  // namespace
}  // namespace millrace::testing
