// SPDX-License-Identifier: Apache-2.0
// Compares convolutions and layers with their definitions over dense matrices.
#include "client/nn/conv.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/layer.h"
#include "client/nn/layer_spec.h"
#include "client/nn/model_kind.h"
#include "client/nn/parameters.h"
#include "client/nn/relation_layer.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;
using testing::RandomLists;

constexpr int64_t kTargets = 40, kSourceRows = 30, kWidthIn = 5;
constexpr int kPlace = 9;
const Pass kTrainingPass{.training = true,
                         .dropout = {.seed = 3, .epoch = 1, .batch = 2}};

using Parameters = std::map<std::string, at::Tensor>;

// A convolution with its parameters by name, all of them random.
struct NamedConv {
  std::unique_ptr<Conv> conv;
  Parameters parameters;
};

// Sets every parameter and buffer to random values, so that none of them is a
// 0 or 1 that would not show.
Parameters Randomised(const ParameterSet& set) {
  Initializer initializer(17);
  Parameters parameters;
  for (const NamedTensor& named : set.State()) {
    if (!named.tensor.is_floating_point()) continue;
    at::Tensor value = named.tensor.detach();
    value.copy_(initializer.Uniform(value.sizes(), 1));
    if (named.name.ends_with("running_var")) value.abs_().add_(0.1);
    parameters[named.name] = value;
  }
  return parameters;
}

NamedConv MakeNamed(const ModelConfig& config, bool last, int64_t out,
                    const GraphShape& shape = GraphShape::Homogeneous(5)) {
  Initializer initializer(8);
  ParameterSet set;
  NamedConv made;
  made.conv = InfoOf(config.kind)
                  .make_conv({.config = config,
                              .shape = shape,
                              .prefix = "c",
                              .in = kWidthIn,
                              .out = out,
                              .last = last,
                              .dropout_place = kPlace},
                             set, initializer);
  made.parameters = Randomised(set);
  return made;
}

GraphShape TwoRelations() {
  GraphShape shape = GraphShape::Homogeneous(kWidthIn);
  shape.relations.push_back({"node__by__node", 0, 0});
  return shape;
}

at::Tensor Sources() { return Initializer(5).Uniform({kSourceRows, 5}, 2); }
at::Tensor Targets() { return Initializer(6).Uniform({kTargets, 5}, 2); }

// [rows, sources]: how often a source is in the list of a row, times `weight`
// [e] if given.
at::Tensor Matrix(const Neighbors& lists, int64_t sources,
                  const at::Tensor& weight = {}) {
  at::Tensor matrix = at::zeros({lists.rows(), sources});
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int64_t e = lists.indptr[i].item().toLong();
         e < lists.indptr[i + 1].item().toLong(); ++e) {
      matrix[i][lists.index[e].item().toLong()] +=
          weight.defined() ? weight[e] : at::ones({});
    }
  }
  return matrix;
}

void ExpectNear(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_GT(want.abs().max().item().toDouble(), 1e-2);
  EXPECT_LT((got - want).abs().max().item().toDouble(), 2e-5);
}

at::Tensor MaxOfNeighbors(const at::Tensor& source, const Neighbors& lists) {
  const at::Tensor matrix = Matrix(lists, source.size(0));
  at::Tensor rows = at::zeros({lists.rows(), source.size(1)});
  for (int64_t i = 0; i < lists.rows(); ++i) {
    const at::Tensor own = matrix[i].nonzero().flatten();
    if (own.numel() == 0) continue;
    rows[i].copy_(source.index_select(0, own).amax(0));
  }
  return rows;
}

TEST(SageConvTest, AddsOwnRowsToAllKindsOfAggregates) {
  const Neighbors lists = RandomLists(kTargets, kSourceRows);
  const at::Tensor source = Sources(), target = Targets();
  const at::Tensor matrix = Matrix(lists, kSourceRows);
  const at::Tensor sum = matrix.matmul(source);
  const std::map<Aggregation, at::Tensor> aggregates = {
      {Aggregation::kSum, sum},
      {Aggregation::kMean, sum / matrix.sum(1, true).clamp_min(1)},
      {Aggregation::kMax, MaxOfNeighbors(source, lists)}};
  for (const auto& [how, aggregate] : aggregates) {
    ModelConfig config;
    config.aggregation = how;
    const NamedConv sage = MakeNamed(config, /*last=*/false, 4);
    const Parameters& p = sage.parameters;
    ASSERT_EQ(p.size(), 3u);
    ExpectNear(
        sage.conv->Forward(source, target, lists, {}),
        at::linear(aggregate, p.at("c.lin_l.weight"), p.at("c.lin_l.bias")) +
            at::linear(target, p.at("c.lin_r.weight")));
  }
}

TEST(GcnConvTest, WeighsNeighborsAndTheNodeItself) {
  Neighbors lists = RandomLists(kTargets, kSourceRows);
  lists.edge_weight = Initializer(2).Uniform({lists.index.size(0)}, 1);
  lists.self_weight = Initializer(3).Uniform({kTargets}, 1);
  ModelConfig config;
  config.kind = ModelKind::kGcn;
  const NamedConv gcn = MakeNamed(config, /*last=*/false, 4);
  const at::Tensor source = Sources(), target = Targets();
  const at::Tensor sum =
      Matrix(lists, kSourceRows, lists.edge_weight).matmul(source) +
      lists.self_weight.unsqueeze(1) * target;
  ExpectNear(gcn.conv->Forward(source, target, lists, {}),
             at::linear(sum, gcn.parameters.at("c.lin.weight"),
                        gcn.parameters.at("c.bias")));
}

TEST(GinConvTest, AppliesAnMlpToTheSum) {
  const Neighbors lists = RandomLists(kTargets, kSourceRows);
  const at::Tensor source = Sources(), target = Targets();
  ModelConfig config;
  config.kind = ModelKind::kGin;
  const NamedConv gin = MakeNamed(config, /*last=*/false, 4);
  const Parameters& p = gin.parameters;
  const at::Tensor sum =
      Matrix(lists, kSourceRows).matmul(source) + (1 + p.at("c.eps")) * target;
  const at::Tensor inner =
      at::linear(sum, p.at("c.nn.lins.0.weight"), p.at("c.nn.lins.0.bias"));
  ExpectNear(gin.conv->Forward(source, target, lists, {}),
             at::linear(inner.relu(), p.at("c.nn.lins.1.weight"),
                        p.at("c.nn.lins.1.bias")));

  config.gin_mlp = 1;
  config.norm = NormKind::kLayer;  // there is no place for it
  const NamedConv linear = MakeNamed(config, /*last=*/false, 4);
  EXPECT_EQ(linear.parameters.size(), 3u);
  ExpectNear(linear.conv->Forward(source, target, lists, {}),
             at::linear(Matrix(lists, kSourceRows).matmul(source) +
                            (1 + linear.parameters.at("c.eps")) * target,
                        linear.parameters.at("c.nn.weight"),
                        linear.parameters.at("c.nn.bias")));
}

TEST(GinConvTest, NormalisesInsideTheMlp) {
  const Neighbors lists = RandomLists(kTargets, kSourceRows);
  const at::Tensor source = Sources(), target = Targets();
  ModelConfig config;
  config.kind = ModelKind::kGin;
  config.norm = NormKind::kBatch;
  const NamedConv gin = MakeNamed(config, /*last=*/false, 4);
  const Parameters& p = gin.parameters;
  const at::Tensor inner = at::linear(
      Matrix(lists, kSourceRows).matmul(source) + (1 + p.at("c.eps")) * target,
      p.at("c.nn.lins.0.weight"), p.at("c.nn.lins.0.bias"));
  const std::string norm = "c.nn.norms.0.module.";
  const auto expected = [&](const at::Tensor& mean,
                            const at::Tensor& variance) {
    const at::Tensor rows =
        (inner - mean) / (variance + 1e-5).sqrt() * p.at(norm + "weight") +
        p.at(norm + "bias");
    return at::linear(rows.relu(), p.at("c.nn.lins.1.weight"),
                      p.at("c.nn.lins.1.bias"));
  };
  ExpectNear(gin.conv->Forward(source, target, lists, {}),
             expected(p.at(norm + "running_mean"), p.at(norm + "running_var")));
  ExpectNear(gin.conv->Forward(source, target, lists, kTrainingPass),
             expected(inner.mean(0), inner.var(0, /*unbiased=*/false)));
}

// PyG's GATConv: every source and target is projected to H heads of C columns.
at::Tensor DenseGat(const Parameters& p, const std::string& source_weight,
                    const std::string& target_weight, const at::Tensor& edges,
                    const at::Tensor& kept, bool concat) {
  const int64_t heads = p.at("c.att_src").size(1);
  const at::Tensor left =
      at::linear(Sources(), p.at(source_weight)).view({kSourceRows, heads, -1});
  const at::Tensor right =
      at::linear(Targets(), p.at(target_weight)).view({kTargets, heads, -1});
  const at::Tensor score =
      at::leaky_relu((right * p.at("c.att_dst")).sum(2).unsqueeze(1) +
                         (left * p.at("c.att_src")).sum(2).unsqueeze(0),
                     0.2);  // [targets, sources, heads]
  const at::Tensor total = (edges * score.exp()).sum(1, true) + 1e-16;
  const at::Tensor rows =
      at::einsum("ijh,jhc->ihc", {kept * score.exp() / total, left});
  return (concat ? rows.reshape({kTargets, -1}) : rows.mean(1)) +
         p.at("c.bias");
}

struct GatCase {
  bool last, homogeneous, training;
};

class GatConvTest : public ::testing::TestWithParam<GatCase> {};

TEST_P(GatConvTest, EqualsTheDefinition) {
  const auto [last, homogeneous, training] = GetParam();
  ModelConfig config;
  config.kind = ModelKind::kGat;
  config.heads = 3;
  config.dropout = 0.4;
  const NamedConv gat =
      MakeNamed(config, last, last ? 4 : 12,
                homogeneous ? GraphShape::Homogeneous(5) : TwoRelations());
  EXPECT_EQ(gat.parameters.size(), homogeneous ? 4u : 5u);
  const Neighbors lists = RandomLists(kTargets, kSourceRows);
  const int64_t count = lists.index.size(0);
  const at::Tensor edges = Matrix(lists, kSourceRows).unsqueeze(2);
  at::Tensor kept = edges;
  if (training) {
    const at::Tensor mask =
        Dropout(at::ones({count, 3}), 0.4, kTrainingPass.dropout, kPlace);
    kept = at::stack({Matrix(lists, kSourceRows, mask.select(1, 0)),
                      Matrix(lists, kSourceRows, mask.select(1, 1)),
                      Matrix(lists, kSourceRows, mask.select(1, 2))},
                     2);
  }
  ExpectNear(gat.conv->Forward(Sources(), Targets(), lists,
                               training ? kTrainingPass : Pass{}),
             DenseGat(gat.parameters,
                      homogeneous ? "c.lin.weight" : "c.lin_src.weight",
                      homogeneous ? "c.lin.weight" : "c.lin_dst.weight", edges,
                      kept, !last));
}

INSTANTIATE_TEST_SUITE_P(Places, GatConvTest,
                         ::testing::Values(GatCase{false, true, false},
                                           GatCase{true, true, false},
                                           GatCase{false, false, false},
                                           GatCase{false, true, true},
                                           GatCase{true, false, true}));

TEST(GatConvTest, WithoutDropoutTrainingChangesNothing) {
  ModelConfig config;
  for (const ModelKind kind : {ModelKind::kGat, ModelKind::kGatv2}) {
    config.kind = kind;
    const NamedConv gat = MakeNamed(config, /*last=*/true, 4);
    const Neighbors lists = RandomLists(kTargets, kSourceRows);
    EXPECT_TRUE(
        gat.conv->Forward(Sources(), Targets(), lists, kTrainingPass)
            .equal(gat.conv->Forward(Sources(), Targets(), lists, Pass{})));
  }
}

// Type 0 has lists of both types, type 1 of type 0; nothing leads to type 2.
GraphShape ThreeTypes() {
  GraphShape shape;
  shape.types = {{"a"}, {"b"}, {"c"}};
  shape.relations = {{"a__x__a", 0, 0}, {"b__x__a", 1, 0}, {"a__x__b", 0, 1}};
  return shape;
}

// Sources and targets of the three types, and the lists of the relations.
LayerInput ThreeTypesInput() {
  LayerInput input;
  for (const int64_t rows : {12, 9, 6}) {
    input.source.push_back(
        Initializer(static_cast<uint64_t>(rows)).Uniform({rows, kWidthIn}, 2));
    input.target.push_back(input.source.back().narrow(0, 0, rows / 3));
  }
  input.neighbors = {RandomLists(4, 12), RandomLists(4, 9), RandomLists(3, 12)};
  return input;
}

class SumOfLists final : public Conv {
 public:
  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors, const Pass&) const override {
    return Aggregate(Aggregation::kSum, source, neighbors).add(target, 10);
  }
};

TEST(RelationLayerTest, AddsTheResultsOfEachType) {
  std::vector<std::unique_ptr<Conv>> convs;
  for (int r = 0; r < 3; ++r) convs.push_back(std::make_unique<SumOfLists>());
  const RelationLayer layer(ThreeTypes().relations, std::move(convs));
  LayerInput input = ThreeTypesInput();
  const auto part = [&](size_t relation, size_t type, size_t lists) {
    return Matrix(input.neighbors[relation], input.source[type].size(0))
               .matmul(input.source[type]) +
           10 * input.target[lists];
  };
  const std::vector<at::Tensor> rows = layer.Forward(input, {});
  ASSERT_EQ(rows.size(), 3u);
  ExpectNear(rows[0], part(0, 0, 0) + part(1, 1, 0));
  ExpectNear(rows[1], part(2, 0, 1));
  EXPECT_FALSE(rows[2].defined());  // nothing leads to it
}

TEST(RelationLayerTest, LeavesOutTypesWithoutTargetsAndRelationsWithoutConvs) {
  std::vector<std::unique_ptr<Conv>> convs(3);
  convs[1] = std::make_unique<SumOfLists>();
  convs[2] = std::make_unique<SumOfLists>();
  const RelationLayer layer(ThreeTypes().relations, std::move(convs));
  LayerInput input = ThreeTypesInput();
  input.target[1] = at::Tensor();
  const std::vector<at::Tensor> rows = layer.Forward(input, {});
  ExpectNear(rows[0], Matrix(input.neighbors[1], 9).matmul(input.source[1]) +
                          10 * input.target[0]);
  EXPECT_FALSE(rows[1].defined());
}

class RgcnLayerTest : public ::testing::TestWithParam<int> {};

TEST_P(RgcnLayerTest, AddsTheMeansOfAllRelations) {
  ModelConfig config;
  config.kind = ModelKind::kRgcn;
  config.bases = GetParam();
  const GraphShape shape = ThreeTypes();
  Initializer initializer(8);
  ParameterSet set;
  const std::unique_ptr<Layer> layer = InfoOf(config.kind)
                                           .make_layer({.config = config,
                                                        .shape = shape,
                                                        .prefix = "c",
                                                        .in = kWidthIn,
                                                        .out = 4},
                                                       set, initializer);
  const Parameters p = Randomised(set);
  EXPECT_EQ(p.size(), config.bases > 0 ? 4u : 3u);
  at::Tensor weights = p.at("c.weight");
  if (config.bases > 0) {
    weights = at::einsum("rb,bio->rio", {p.at("c.comp"), weights});
  }
  LayerInput input = ThreeTypesInput();
  const auto mean = [&](size_t relation, int64_t type) {
    const at::Tensor matrix =
        Matrix(input.neighbors[relation], input.source[type].size(0));
    return (matrix / matrix.sum(1, true).clamp_min(1))
        .matmul(input.source[type])
        .matmul(weights[static_cast<int64_t>(relation)]);
  };
  const auto own = [&](size_t type) {
    return input.target[type].matmul(p.at("c.root")) + p.at("c.bias");
  };
  const std::vector<at::Tensor> rows = layer->Forward(input, {});
  ASSERT_EQ(rows.size(), 3u);
  ExpectNear(rows[0], own(0) + mean(0, 0) + mean(1, 1));
  ExpectNear(rows[1], own(1) + mean(2, 0));
  ExpectNear(rows[2], own(2));
  // Types without targets are not computed.
  input.target[1] = input.target[2] = at::Tensor();
  const std::vector<at::Tensor> first = layer->Forward(input, {});
  EXPECT_TRUE(first[0].equal(rows[0]));
  EXPECT_FALSE(first[1].defined());
  EXPECT_FALSE(first[2].defined());
}

INSTANTIATE_TEST_SUITE_P(Bases, RgcnLayerTest, ::testing::Values(0, 2));

TEST(AggregateTest, ListsThatAreEmptyAltogetherGiveZeros) {
  const Neighbors none{at::zeros({4}, at::kInt), Ints({}), {}, {}};
  for (const Aggregation how :
       {Aggregation::kMean, Aggregation::kSum, Aggregation::kMax}) {
    EXPECT_TRUE(Aggregate(how, Sources(), none).equal(at::zeros({3, 5})));
  }
  EXPECT_TRUE(WeightedSumOfNeighbors(
                  Sources(), {none.indptr, none.index, at::ones({0}), {}})
                  .equal(at::zeros({3, 5})));
}

TEST(AggregateTest, FirstRowsCutsListsAndWeights) {
  const Neighbors all{Ints({0, 2, 2, 5}), Ints({4, 3, 2, 1, 0}),
                      at::arange(5, at::kFloat), at::arange(9, at::kFloat)};
  const Neighbors two = FirstRows(all, 2);
  EXPECT_EQ(two.rows(), 2);
  EXPECT_TRUE(two.indptr.equal(Ints({0, 2, 2})));
  EXPECT_TRUE(two.index.equal(Ints({4, 3})));
  EXPECT_TRUE(two.edge_weight.equal(at::arange(2, at::kFloat)));
  EXPECT_TRUE(two.self_weight.equal(at::arange(2, at::kFloat)));
  const Neighbors three = FirstRows(all, 3);
  EXPECT_TRUE(three.indptr.equal(all.indptr));
  EXPECT_TRUE(three.index.equal(all.index));
  EXPECT_EQ(three.self_weight.size(0), 3);
  const Neighbors six = FirstRows(all, 6);
  EXPECT_TRUE(six.indptr.equal(Ints({0, 2, 2, 5, 5, 5, 5})));
  EXPECT_TRUE(six.index.equal(all.index));
  EXPECT_EQ(six.edge_weight.size(0), 5);
  EXPECT_EQ(six.self_weight.size(0), 6);
}

TEST(AggregateTest, SelfLoopsAreAddedToEmptyLists) {
  const Neighbors looped =
      WithSelfLoops({Ints({0, 0, 2}), Ints({1, 1}), {}, {}});
  EXPECT_TRUE(looped.indptr.equal(Ints({0, 1, 2})));
  EXPECT_TRUE(looped.index.equal(Ints({0, 1})));
}

TEST(AggregateTest, FullGcnWeighsEachListByItsOwnDegree) {
  // Rows 0 and 2 have lists; row 3 was not expanded.
  Neighbors lists{Ints({0, 2, 2, 3}), Ints({1, 3, 0}), {}, {}};
  GcnWeights(GcnNorm::kFull, 4, Ints({8, 3, 15, 0}), lists);
  const auto edge = lists.edge_weight.accessor<float, 1>();
  const auto self = lists.self_weight.accessor<float, 1>();
  EXPECT_FLOAT_EQ(edge[0], 4.0f / 6);
  EXPECT_FLOAT_EQ(edge[1], 4.0f / 3);
  EXPECT_FLOAT_EQ(edge[2], 15.0f / 12);
  EXPECT_FLOAT_EQ(self[0], 1 / 9.0f);
  EXPECT_FLOAT_EQ(self[1], 1 / 4.0f);
  EXPECT_FLOAT_EQ(self[2], 1 / 16.0f);
  EXPECT_FLOAT_EQ(self[3], 1);
}

TEST(AggregateTest, SampledGcnDoesNotCountOwnLoopsTwice) {
  Neighbors lists{Ints({0, 1, 4}), Ints({1, 1, 0, 1}), {}, {}};
  GcnWeights(GcnNorm::kSampled, 2, {}, lists);
  const auto edge = lists.edge_weight.accessor<float, 1>();
  const auto self = lists.self_weight.accessor<float, 1>();
  // Both nodes have one other neighbour and their loop: degree 2.
  EXPECT_FLOAT_EQ(edge[0], 0.5f);
  EXPECT_FLOAT_EQ(edge[1], 0);
  EXPECT_FLOAT_EQ(edge[2], 0.5f);
  EXPECT_FLOAT_EQ(edge[3], 0);
  EXPECT_FLOAT_EQ(self[0], 0.5f);
  EXPECT_FLOAT_EQ(self[1], 0.5f);
}

}  // namespace
}  // namespace millrace
