// SPDX-License-Identifier: Apache-2.0
// Norms, heads, decoders and inputs of models.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/nn/decoder.h"
#include "client/nn/graph_head.h"
#include "client/nn/node_input.h"
#include "client/nn/norm.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::Ints;
using ::testing::IsEmpty;

std::vector<std::string> StateNames(const ParameterSet& set) {
  std::vector<std::string> names;
  for (const NamedTensor& named : set.State()) names.push_back(named.name);
  return names;
}

at::Tensor Named(const ParameterSet& set, const std::string& name) {
  for (const NamedTensor& named : set.State()) {
    if (named.name == name) return named.tensor.detach();
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(NormTest, NoneAddsNothing) {
  ParameterSet set;
  EXPECT_EQ(Norm::Create(NormKind::kNone, "n", 3, set), nullptr);
  EXPECT_THAT(StateNames(set), IsEmpty());
}

// The variances are as small as the epsilon of 1e-5, so that it shows.
TEST(NormTest, BatchNormTakesTheStatisticsOfTheBatch) {
  ParameterSet set;
  const auto norm = Norm::Create(NormKind::kBatch, "n", 2, set);
  Named(set, "n.module.weight").fill_(3);
  Named(set, "n.module.bias").fill_(5);
  const double d = std::sqrt(1e-5);
  const at::Tensor rows =
      at::tensor({7 + d, -d, 7 - d, d}, at::kFloat).view({2, 2});
  const at::Tensor got = norm->Forward(rows, /*training=*/true);
  const double unit = 3 / std::sqrt(2.0);
  EXPECT_TRUE(at::allclose(
      got,
      at::tensor({5 + unit, 5 - unit, 5 - unit, 5 + unit}, at::kFloat)
          .view({2, 2}),
      1e-3, 0));
  // A tenth of the batch's mean and of its unbiased variance.
  EXPECT_TRUE(at::allclose(Named(set, "n.module.running_mean"),
                           at::tensor({0.7f, 0.0f}), 0, 1e-6));
  EXPECT_TRUE(at::allclose(Named(set, "n.module.running_var"),
                           at::full({2}, 0.9 + 0.1 * 2e-5), 0, 1e-7));
  EXPECT_EQ(Named(set, "n.module.num_batches_tracked").item().toLong(), 1);
  norm->Forward(rows, /*training=*/true);
  EXPECT_EQ(Named(set, "n.module.num_batches_tracked").item().toLong(), 2);
}

TEST(NormTest, BatchNormReadsAndKeepsRunningStatisticsOtherwise) {
  ParameterSet set;
  const auto norm = Norm::Create(NormKind::kBatch, "n", 1, set);
  Named(set, "n.module.running_mean").fill_(4);
  Named(set, "n.module.running_var").fill_(9);
  const at::Tensor rows = at::tensor({10.0f, 1.0f}).view({2, 1});
  EXPECT_TRUE(at::allclose(norm->Forward(rows, /*training=*/false),
                           at::tensor({2.0f, -1.0f}).view({2, 1}), 1e-5, 0));
  EXPECT_EQ(Named(set, "n.module.num_batches_tracked").item().toLong(), 0);
  EXPECT_EQ(Named(set, "n.module.running_mean").item().toDouble(), 4);
  // A single row has no variance, even while training.
  EXPECT_TRUE(at::allclose(norm->Forward(rows.narrow(0, 0, 1), true),
                           at::full({1, 1}, 2.0), 1e-5, 0));
  EXPECT_EQ(Named(set, "n.module.running_mean").item().toDouble(), 4);
}

TEST(NormTest, LayerNormTakesTheStatisticsOfEachRow) {
  ParameterSet set;
  const auto norm = Norm::Create(NormKind::kLayer, "n", 2, set);
  EXPECT_THAT(StateNames(set), ElementsAre("n.weight", "n.bias"));
  const at::Tensor rows = at::tensor({1.0f, 3.0f, 50.0f, 10.0f}).view({2, 2});
  for (const bool training : {false, true}) {
    EXPECT_TRUE(at::allclose(
        norm->Forward(rows, training),
        at::tensor({-1.0f, 1.0f, 1.0f, -1.0f}).view({2, 2}), 1e-4, 0));
  }
  Named(set, "n.weight").copy_(at::tensor({2.0f, 3.0f}));
  Named(set, "n.bias").copy_(at::tensor({7.0f, 8.0f}));
  const float d = std::sqrt(1e-5f);
  const float unit = 1 / std::sqrt(2.0f);
  EXPECT_TRUE(at::allclose(
      norm->Forward(at::tensor({d, -d}).view({1, 2}), false),
      at::tensor({7 + 2 * unit, 8 - 3 * unit}).view({1, 2}), 1e-4, 0));
}

// Two graphs, of the nodes 0 and 2, and 1; and one without nodes.
Neighbors Graphs() { return {Ints({0, 2, 3, 3}), Ints({0, 2, 1}), {}, {}}; }

TEST(GraphHeadTest, PoolsTheRowsOfEachGraph) {
  const at::Tensor rows =
      at::tensor({1.0f, 8.0f, 2.0f, 3.0f, 5.0f, 4.0f}).view({3, 2});
  const std::vector<std::pair<Aggregation, std::vector<float>>> cases = {
      {Aggregation::kSum, {6, 12, 2, 3, 0, 0}},
      {Aggregation::kMean, {3, 6, 2, 3, 0, 0}},
      {Aggregation::kMax, {5, 8, 2, 3, 0, 0}}};
  for (const auto& [readout, pooled] : cases) {
    ModelConfig config;
    config.readout = readout;
    config.graph_head = false;
    config.dropout = 0.5;  // has no place
    ParameterSet set;
    Initializer initializer(1);
    const GraphHead head(config, 3, set, initializer);
    EXPECT_THAT(StateNames(set), IsEmpty());
    EXPECT_TRUE(head.Forward(rows, Graphs(), {.training = true, .dropout = {}})
                    .equal(at::tensor(pooled).view({3, 2})));
  }
}

TEST(GraphHeadTest, AnMlpWithDropoutFollows) {
  ModelConfig config;
  config.hidden = 4;
  config.out = 3;
  config.dropout = 0.5;
  ParameterSet set;
  Initializer initializer(1);
  const GraphHead head(config, /*dropout_place=*/6, set, initializer);
  EXPECT_THAT(StateNames(set),
              ElementsAre("head.lins.0.weight", "head.lins.0.bias",
                          "head.lins.1.weight", "head.lins.1.bias"));
  EXPECT_EQ(Named(set, "head.lins.0.weight").sizes(), at::IntArrayRef({4, 4}));
  EXPECT_EQ(Named(set, "head.lins.1.weight").sizes(), at::IntArrayRef({3, 4}));
  const at::Tensor rows = Initializer(2).Uniform({3, 4}, 3);
  const at::Tensor pooled = Aggregate(Aggregation::kSum, rows, Graphs());
  const at::Tensor inner = at::linear(pooled, Named(set, "head.lins.0.weight"),
                                      Named(set, "head.lins.0.bias"))
                               .relu();
  const auto outer = [&](const at::Tensor& x) {
    return at::linear(x, Named(set, "head.lins.1.weight"),
                      Named(set, "head.lins.1.bias"));
  };
  const DropoutKey key{.seed = 5, .epoch = 1, .batch = 2};
  EXPECT_TRUE(at::allclose(head.Forward(rows, Graphs(), {false, key}),
                           outer(inner), 0, 1e-6));
  EXPECT_TRUE(at::allclose(head.Forward(rows, Graphs(), {true, key}),
                           outer(Dropout(inner, 0.5, key, 6)), 0, 1e-6));
  EXPECT_FALSE(
      at::allclose(outer(Dropout(inner, 0.5, key, 6)), outer(inner), 0, 1e-3));
}

TEST(DecoderTest, DotProductsTakeTheRowsAsTheyAre) {
  ParameterSet set;
  Initializer initializer(1);
  const Decoder decoder(DecoderKind::kDot, 3, 2, set, initializer);
  EXPECT_THAT(StateNames(set), IsEmpty());
  const at::Tensor rows = at::ones({4, 2});
  EXPECT_TRUE(decoder.Query(rows, {}).equal(rows));
}

TEST(DecoderTest, DistMultWeighsColumnsByTheEdgesType) {
  ParameterSet set;
  Initializer initializer(1);
  const Decoder decoder(DecoderKind::kDistMult, 3, 2, set, initializer);
  EXPECT_THAT(StateNames(set), ElementsAre("rel_emb.weight"));
  Named(set, "rel_emb.weight")
      .copy_(at::tensor({2.0f, 3.0f, 5.0f, 7.0f, 11.0f, 13.0f}).view({3, 2}));
  const at::Tensor rows = at::tensor({1.0f, 10.0f, 2.0f, 20.0f}).view({2, 2});
  EXPECT_TRUE(
      decoder.Query(rows, at::tensor({2, 1}, at::kLong))
          .equal(at::tensor({11.0f, 130.0f, 10.0f, 140.0f}).view({2, 2})));
  // Without types, all edges are of type 0.
  EXPECT_TRUE(decoder.Query(rows, {}).equal(
      at::tensor({2.0f, 30.0f, 4.0f, 60.0f}).view({2, 2})));
}

TEST(NodeInputTest, ProjectsFeatures) {
  ParameterSet set;
  Initializer initializer(1);
  const NodeInput input({"item", 9, 3}, 2, set, initializer);
  EXPECT_FALSE(input.learned());
  EXPECT_THAT(StateNames(set),
              ElementsAre("lin_dict.item.weight", "lin_dict.item.bias"));
  const at::Tensor x = Initializer(2).Uniform({4, 3}, 1);
  EXPECT_TRUE(at::allclose(input.Forward(x, {}),
                           x.matmul(Named(set, "lin_dict.item.weight").t()) +
                               Named(set, "lin_dict.item.bias"),
                           0, 1e-6));
}

TEST(NodeInputTest, OneColumnIsEnough) {
  ParameterSet set;
  Initializer initializer(1);
  EXPECT_FALSE(NodeInput({"item", 9, 1}, 2, set, initializer).learned());
  EXPECT_EQ(Named(set, "lin_dict.item.weight").sizes(),
            at::IntArrayRef({2, 1}));
}

TEST(NodeInputTest, LearnsARowForEachNodeWithoutFeatures) {
  ParameterSet set;
  Initializer initializer(1);
  const NodeInput input({"user", 9, 0}, 2, set, initializer);
  EXPECT_TRUE(input.learned());
  EXPECT_THAT(StateNames(set), ElementsAre("emb_dict.user.weight"));
  const at::Tensor table = Named(set, "emb_dict.user.weight");
  EXPECT_EQ(table.sizes(), at::IntArrayRef({9, 2}));
  const at::Tensor rows = input.Forward({}, at::tensor({8, 0}, at::kLong));
  EXPECT_TRUE(rows[0].equal(table[8]));
  EXPECT_TRUE(rows[1].equal(table[0]));
}

}  // namespace
}  // namespace millrace
