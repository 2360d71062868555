// SPDX-License-Identifier: Apache-2.0
#include "client/nn/attention.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "client/nn/operators/attention_math.h"
#include "client/nn/parameters.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;
using testing::RandomLists;

constexpr int64_t kRows = 70, kSources = 90, kHeads = 3, kWidth = 5;

AttentionInput RandomInput(int64_t edges, bool masked) {
  Initializer initializer(9);
  AttentionInput input;
  input.values = initializer.Uniform({kSources, kWidth}, 1.0);
  input.source_score = initializer.Uniform({kSources, kHeads}, 3.0);
  input.target_score = initializer.Uniform({kRows, kHeads}, 3.0);
  for (at::Tensor* tensor :
       {&input.values, &input.source_score, &input.target_score}) {
    tensor->requires_grad_(true);
  }
  if (masked) {
    input.mask =
        initializer.Uniform({edges, kHeads}, 1.0).gt(0.2).to(at::kFloat) * 2.5;
  }
  return input;
}

// The definition, row by row with LibTorch's operations.
at::Tensor Plain(const AttentionInput& input, const Neighbors& neighbors) {
  std::vector<at::Tensor> rows;
  const int32_t* indptr = neighbors.indptr.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < neighbors.rows(); ++i) {
    const int64_t begin = indptr[i], length = indptr[i + 1] - begin;
    if (length == 0) {
      rows.push_back(at::zeros({kHeads, kWidth}));
      continue;
    }
    const at::Tensor index = neighbors.index.narrow(0, begin, length);
    at::Tensor weight =
        at::softmax(at::leaky_relu(input.source_score.index_select(0, index) +
                                       input.target_score.narrow(0, i, 1),
                                   0.2),
                    0);
    if (input.mask.defined()) {
      weight = weight * input.mask.narrow(0, begin, length);
    }
    rows.push_back(
        (weight.unsqueeze(2) * input.values.index_select(0, index).unsqueeze(1))
            .sum(0));
  }
  return at::stack(rows);
}

std::vector<at::Tensor> Gradients(const AttentionInput& input,
                                  const at::Tensor& result) {
  const at::Tensor probe = Initializer(4).Uniform(result.sizes(), 1.0);
  (result * probe).sum().backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& tensor :
       {input.values, input.source_score, input.target_score}) {
    gradients.push_back(tensor.grad().clone());
    tensor.mutable_grad().reset();
  }
  return gradients;
}

class AttentionTest : public ::testing::TestWithParam<bool> {};

TEST_P(AttentionTest, EqualsThePlainSoftmax) {
  const Neighbors lists = RandomLists(kRows, kSources);
  const AttentionInput input = RandomInput(lists.index.size(0), GetParam());
  const at::Tensor got = AttendToNeighbors(input, lists);
  const at::Tensor want = Plain(input, lists);
  EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6));
  const auto got_gradients = Gradients(input, got);
  const auto want_gradients = Gradients(input, want);
  for (size_t i = 0; i < got_gradients.size(); ++i) {
    EXPECT_TRUE(at::allclose(got_gradients[i], want_gradients[i], 1e-4, 1e-5))
        << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Masks, AttentionTest, ::testing::Bool());

TEST(AttentionKernelTest, SlopesAreThoseOfLibTorch) {
  const at::Tensor x = at::tensor({-2.0f, 0.0f, 3.0f}).requires_grad_(true);
  const at::Tensor y = at::leaky_relu(x, 0.2);
  y.sum().backward();
  for (int64_t i = 0; i < 3; ++i) {
    const float value = x[i].item().toFloat();
    EXPECT_EQ(LeakyRelu(value), y[i].item().toFloat());
    EXPECT_EQ(LeakyReluSlope(value), x.grad()[i].item().toFloat());
  }
}

TEST(AttentionKernelTest, EdgesOfASourceAscend) {
  const std::vector<int32_t> indptr = {0, 2, 2, 5}, index = {2, 0, 0, 2, 2};
  const EdgesBySource edges(indptr.data(), index.data(), 3, 4);
  EXPECT_EQ(edges.begin, (std::vector<int32_t>{0, 2, 2, 5, 5}));
  EXPECT_EQ(edges.edge, (std::vector<int32_t>{1, 2, 0, 3, 4}));
  EXPECT_EQ(edges.row, (std::vector<int32_t>{0, 0, 2, 2, 2}));
}

TEST(AttentionKernelTest, DotProductsHaveAnyLength) {
  std::vector<float> x, y;
  double want = 0;
  for (int i = 0; i < 11; ++i) {
    EXPECT_FLOAT_EQ(Dot(x.data(), y.data(), i), want) << i;
    x.push_back(static_cast<float>(i + 1));
    y.push_back(static_cast<float>(2 * i - 5));
    want += (i + 1) * (2 * i - 5);
  }
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
  AttentionInput input = RandomInput(0, false);
  const Neighbors lists{Ints({0, 2}), Ints({0, 1}), {}, {}};
  input.source_score = at::zeros({kSources, kHeads}).add(500.0);
  input.target_score = at::zeros({1, kHeads}).add(500.0);
  const at::Tensor got = AttendToNeighbors(input, lists);
  const at::Tensor mean = (input.values[0] + input.values[1]) / 2;
  EXPECT_TRUE(at::allclose(got[0], mean.expand({kHeads, kWidth}), 1e-5, 1e-6));
}

TEST(AttentionTest, NoEdgesGiveZerosAndZeroGradients) {
  const AttentionInput input = RandomInput(0, false);
  const Neighbors lists{at::zeros({kRows + 1}, at::kInt), Ints({}), {}, {}};
  const at::Tensor got = AttendToNeighbors(input, lists);
  EXPECT_EQ(got.abs().sum().item().toDouble(), 0);
  for (const at::Tensor& gradient : Gradients(input, got)) {
    EXPECT_EQ(gradient.abs().sum().item().toDouble(), 0);
  }
}

}  // namespace
}  // namespace millrace
