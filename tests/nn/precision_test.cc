// SPDX-License-Identifier: Apache-2.0
#include "client/nn/precision.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/nn/model.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;

// Two seeds, three nodes one hop away, two nodes two hops away.
Subgraph SevenNodes() {
  Subgraph graph;
  graph.nodes.resize(1);
  graph.nodes[0].x = Initializer(4).Uniform({7, 16}, 2);
  graph.nodes[0].hop_offsets = {0, 2, 5, 7};
  Neighbors lists{
      Ints({0, 3, 5, 7, 8, 10}), Ints({2, 3, 0, 4, 2, 0, 5, 6, 1, 5}), {}, {}};
  GcnWeights(GcnNorm::kFull, 7, Ints({3, 4, 2, 1, 5, 2, 9}), lists);
  graph.neighbors = {lists};
  return graph;
}

struct Step {
  at::Tensor rows;
  at::Tensor gradient;  // of all parameters, one after the other
};

Step RunStep(const ModelConfig& config, bool training) {
  const auto model = Model::Create(config).value();
  Step step;
  step.rows = model->Forward(SevenNodes(),
                             {.training = training, .dropout = {.seed = 3}});
  if (!training) return step;
  step.rows.square().sum().backward();
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& named : model->parameters().parameters()) {
    if (!named.tensor.grad().defined()) continue;
    EXPECT_EQ(named.tensor.grad().scalar_type(), at::kFloat) << named.name;
    gradients.push_back(named.tensor.grad().flatten());
  }
  step.gradient = at::cat(gradients);
  return step;
}

double RelativeError(const at::Tensor& got, const at::Tensor& want) {
  return (got.sub(want).norm() / want.norm()).item().toDouble();
}

class PrecisionTest : public ::testing::TestWithParam<ModelKind> {
 protected:
  PrecisionTest() {
    config_.kind = GetParam();
    config_.in = 16;
    config_.hidden = 32;
    config_.out = 8;
    config_.heads = 2;
    config_.norm = NormKind::kBatch;
    config_.dropout = 0.25;
  }

  ModelConfig config_;
};

// bfloat16 has 8 significant bits.
TEST_P(PrecisionTest, TrainsWithTheRoundingOfBfloat16) {
  const Step exact = RunStep(config_, true);
  config_.precision = Precision::kBfloat16;
  const Step rounded = RunStep(config_, true);
  EXPECT_EQ(rounded.rows.scalar_type(), at::kFloat);
  EXPECT_FALSE(rounded.rows.equal(exact.rows));
  EXPECT_LT(RelativeError(rounded.rows, exact.rows), 0.03);
  EXPECT_LT(RelativeError(rounded.gradient, exact.gradient), 0.1);
}

TEST_P(PrecisionTest, EvaluatesInFloat32) {
  const at::Tensor exact = RunStep(config_, false).rows;
  config_.precision = Precision::kBfloat16;
  EXPECT_TRUE(RunStep(config_, false).rows.equal(exact));
}

TEST_P(PrecisionTest, RepeatsItsBits) {
  config_.precision = Precision::kBfloat16;
  EXPECT_TRUE(RunStep(config_, true).rows.equal(RunStep(config_, true).rows));
}

INSTANTIATE_TEST_SUITE_P(Models, PrecisionTest,
                         ::testing::Values(ModelKind::kSage, ModelKind::kGcn,
                                           ModelKind::kGat, ModelKind::kGatv2,
                                           ModelKind::kGin, ModelKind::kRgcn),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

TEST(ScopedPrecisionTest, LeavesTheThreadAsItWas) {
  const auto product = [] {
    return at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type();
  };
  {
    const ScopedPrecision outer(at::kCPU, Precision::kBfloat16);
    EXPECT_EQ(product(), at::kBFloat16);
    {
      const ScopedPrecision inner(at::kCPU, Precision::kBfloat16);
      EXPECT_EQ(product(), at::kBFloat16);
    }
    EXPECT_EQ(product(), at::kBFloat16);
  }
  EXPECT_EQ(product(), at::kFloat);
  const ScopedPrecision plain(at::kCPU, Precision::kFloat32);
  EXPECT_EQ(product(), at::kFloat);
}

}  // namespace
}  // namespace millrace
