// SPDX-License-Identifier: Apache-2.0
// Compares Gatv2Conv with its definition, in doubles over dense matrices.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/nn/conv.h"
#include "client/nn/dropout.h"
#include "client/nn/layer_spec.h"
#include "client/nn/model_kind.h"
#include "client/nn/parameters.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;
using testing::RandomLists;

constexpr int64_t kV2Rows = 70, kV2Sources = 90, kIn = 5;
constexpr int kV2Heads = 3, kDropoutPlace = 7;
constexpr double kRate = 0.25;
const Pass kTraining{.training = true,
                     .dropout = {.seed = 3, .epoch = 1, .batch = 2}};

// [rows, sources, heads]: the sum of the factors of the edges from a source to
// a row; those of parallel edges are added, as their weights are equal.
at::Tensor Cells(const Neighbors& lists, const at::Tensor& factor) {
  at::Tensor cells = at::zeros({kV2Rows, kV2Sources, kV2Heads}, at::kDouble);
  auto cell = cells.accessor<double, 3>();
  const auto factors = factor.accessor<float, 2>();
  const int32_t* indptr = lists.indptr.const_data_ptr<int32_t>();
  const int32_t* index = lists.index.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < kV2Rows; ++i) {
    for (int32_t e = indptr[i]; e < indptr[i + 1]; ++e) {
      for (int h = 0; h < kV2Heads; ++h) cell[i][index[e]][h] += factors[e][h];
    }
  }
  return cells;
}

// A convolution and the tensors its result is differentiated with respect to:
// the rows of both ends, then its parameters att, bias, lin_l and lin_r.
struct Made {
  std::unique_ptr<Conv> conv;
  std::vector<at::Tensor> inputs;
  bool last = false;
};

Made Make(bool last) {
  ModelConfig config;
  config.kind = ModelKind::kGatv2;
  config.heads = kV2Heads;
  config.dropout = kRate;
  const GraphShape shape = GraphShape::Homogeneous(kIn);
  Initializer initializer(9);
  ParameterSet parameters;
  Made made;
  made.last = last;
  made.conv = InfoOf(config.kind)
                  .make_conv({.config = config,
                              .shape = shape,
                              .prefix = "conv",
                              .in = kIn,
                              .out = last ? 4 : 4 * kV2Heads,
                              .last = last,
                              .dropout_place = kDropoutPlace},
                             parameters, initializer);
  made.inputs = {
      initializer.Uniform({kV2Sources, kIn}, 2.0).requires_grad_(true),
      initializer.Uniform({kV2Rows, kIn}, 2.0).requires_grad_(true)};
  std::vector<std::string> names;
  for (const NamedTensor& named : parameters.parameters()) {
    names.push_back(named.name);
    made.inputs.push_back(named.tensor);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv.att", "conv.bias",
                                      "conv.lin_l.weight", "conv.lin_l.bias",
                                      "conv.lin_r.weight", "conv.lin_r.bias"}));
  return made;
}

// The definition of Brody et al. 2022. `edges` and `kept` are Cells() of ones,
// and of the ones that dropout keeps.
at::Tensor Dense(const std::vector<at::Tensor>& inputs, bool last,
                 const at::Tensor& edges, const at::Tensor& kept) {
  const at::Tensor &att = inputs[2], &bias = inputs[3];
  const auto project = [&](int64_t rows, size_t end, size_t weight) {
    return at::linear(inputs[end], inputs[weight], inputs[weight + 1])
        .view({rows, kV2Heads, -1});
  };
  const at::Tensor left = project(kV2Sources, 0, 4);
  const at::Tensor right = project(kV2Rows, 1, 6);
  const at::Tensor score =
      (at::leaky_relu(right.unsqueeze(1) + left.unsqueeze(0), 0.2) * att)
          .sum(3)
          .exp();
  const at::Tensor total = (edges * score).sum(1, true) + 1e-16;
  const at::Tensor heads =
      at::einsum("ijh,jhc->ihc", {kept * score / total, left});
  return (last ? heads.mean(1) : heads.reshape({kV2Rows, -1})) + bias;
}

std::vector<at::Tensor> Gradients(const std::vector<at::Tensor>& inputs,
                                  const at::Tensor& result) {
  const at::Tensor probe =
      Initializer(4).Uniform(result.sizes(), 1.0).to(result.scalar_type());
  (result * probe).sum().backward();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& input : inputs) {
    gradients.push_back(input.grad().clone());
    input.mutable_grad().reset();
  }
  return gradients;
}

void ExpectClose(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const double largest = want.abs().max().item().toDouble();
  EXPECT_GT(largest, 1e-2);
  EXPECT_LE((got.to(at::kDouble) - want).abs().max().item().toDouble(),
            2e-6 * std::max(1.0, largest));
}

struct Case {
  bool last, training;
};

class Gatv2ConvTest : public ::testing::TestWithParam<Case> {};

TEST_P(Gatv2ConvTest, EqualsTheDefinition) {
  const Neighbors lists = RandomLists(kV2Rows, kV2Sources);
  const Made made = Make(GetParam().last);
  const Pass pass = GetParam().training ? kTraining : Pass{};
  const at::Tensor one = at::ones({lists.index.size(0), kV2Heads}, at::kFloat);
  const at::Tensor edges = Cells(lists, one);
  const at::Tensor kept =
      pass.training
          ? Cells(lists, Dropout(one, kRate, pass.dropout, kDropoutPlace))
          : edges;
  EXPECT_EQ(kept.equal(edges), !pass.training);
  std::vector<at::Tensor> doubles;
  for (const at::Tensor& input : made.inputs) {
    doubles.push_back(input.detach().to(at::kDouble).requires_grad_(true));
  }
  const at::Tensor got =
      made.conv->Forward(made.inputs[0], made.inputs[1], lists, pass);
  const at::Tensor want = Dense(doubles, made.last, edges, kept);
  ExpectClose(got, want);
  const auto got_gradients = Gradients(made.inputs, got);
  const auto want_gradients = Gradients(doubles, want);
  for (size_t i = 0; i < got_gradients.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectClose(got_gradients[i], want_gradients[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, Gatv2ConvTest,
                         ::testing::Values(Case{false, false},
                                           Case{false, true}, Case{true, false},
                                           Case{true, true}));

TEST(Gatv2ConvTest, NumbersOfThreadsDoNotChangeBits) {
  const Neighbors lists = RandomLists(kV2Rows, kV2Sources);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 4}) {
    at::set_num_threads(threads);
    const Made made = Make(/*last=*/false);
    const at::Tensor rows =
        made.conv->Forward(made.inputs[0], made.inputs[1], lists, kTraining);
    results.push_back(Gradients(made.inputs, rows));
    results.back().push_back(rows);
  }
  at::set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(results[0][i].equal(results[1][i])) << i;
  }
}

TEST(Gatv2ConvTest, NoNeighborsGiveTheBias) {
  const Made made = Make(/*last=*/true);
  const Neighbors none{at::zeros({kV2Rows + 1}, at::kInt), Ints({}), {}, {}};
  const at::Tensor rows =
      made.conv->Forward(made.inputs[0], made.inputs[1], none, kTraining);
  EXPECT_TRUE(rows.equal(made.inputs[3].expand({kV2Rows, 4})));
  const auto gradients = Gradients(made.inputs, rows);
  EXPECT_EQ(gradients[2].abs().sum().item().toDouble(), 0);
  EXPECT_GT(gradients[3].abs().sum().item().toDouble(), 0);
}

}  // namespace
}  // namespace millrace
