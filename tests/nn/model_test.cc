// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/base/field_error.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;
using ::testing::Test;

ModelConfig Config() {
  ModelConfig config;
  config.in = 3;
  config.hidden = 5;
  config.out = 2;
  config.layers = 2;
  return config;
}

std::vector<std::string> Names(const Model& model) {
  std::vector<std::string> names;
  for (const NamedTensor& named : model.parameters().State()) {
    names.push_back(named.name);
  }
  return names;
}

TEST(ModelTest, HasPygsNames) {
  ModelConfig config = Config();
  config.norm = NormKind::kBatch;
  EXPECT_EQ(
      Names(*Model::Create(config).value()),
      (std::vector<std::string>{
          "convs.0.lin_l.weight", "convs.0.lin_l.bias", "convs.0.lin_r.weight",
          "convs.1.lin_l.weight", "convs.1.lin_l.bias", "convs.1.lin_r.weight",
          "norms.0.module.weight", "norms.0.module.bias",
          "norms.0.module.running_mean", "norms.0.module.running_var",
          "norms.0.module.num_batches_tracked"}));
  config.kind = ModelKind::kGcn;
  config.norm = NormKind::kLayer;
  EXPECT_EQ(Names(*Model::Create(config).value()),
            (std::vector<std::string>{"convs.0.bias", "convs.0.lin.weight",
                                      "convs.1.bias", "convs.1.lin.weight",
                                      "norms.0.weight", "norms.0.bias"}));
}

TEST(ModelTest, GatHasPygsNamesAndShapes) {
  ModelConfig config = Config();
  config.kind = ModelKind::kGat;
  config.hidden = 6;
  config.heads = 3;
  const auto model = Model::Create(config).value();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const NamedTensor& named : model->parameters().State()) {
    shapes[named.name] = named.tensor.sizes().vec();
  }
  // Hidden heads are concatenated; those of the last layer have full width.
  EXPECT_EQ(shapes, (std::map<std::string, std::vector<int64_t>>{
                        {"convs.0.att_src", {1, 3, 2}},
                        {"convs.0.att_dst", {1, 3, 2}},
                        {"convs.0.bias", {6}},
                        {"convs.0.lin.weight", {6, 3}},
                        {"convs.1.att_src", {1, 3, 2}},
                        {"convs.1.att_dst", {1, 3, 2}},
                        {"convs.1.bias", {2}},
                        {"convs.1.lin.weight", {6, 6}}}));
}

TEST(ModelTest, Gatv2HasPygsNamesAndShapes) {
  ModelConfig config = Config();
  config.kind = ModelKind::kGatv2;
  config.hidden = 6;
  config.heads = 3;
  const auto model = Model::Create(config).value();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const NamedTensor& named : model->parameters().State()) {
    shapes[named.name] = named.tensor.sizes().vec();
  }
  EXPECT_EQ(shapes, (std::map<std::string, std::vector<int64_t>>{
                        {"convs.0.att", {1, 3, 2}},
                        {"convs.0.bias", {6}},
                        {"convs.0.lin_l.weight", {6, 3}},
                        {"convs.0.lin_l.bias", {6}},
                        {"convs.0.lin_r.weight", {6, 3}},
                        {"convs.0.lin_r.bias", {6}},
                        {"convs.1.att", {1, 3, 2}},
                        {"convs.1.bias", {2}},
                        {"convs.1.lin_l.weight", {6, 6}},
                        {"convs.1.lin_l.bias", {6}},
                        {"convs.1.lin_r.weight", {6, 6}},
                        {"convs.1.lin_r.bias", {6}}}));
}

TEST(ModelTest, HeadsDivideTheHiddenColumns) {
  for (const ModelKind kind : {ModelKind::kGat, ModelKind::kGatv2}) {
    ModelConfig config = Config();
    config.kind = kind;
    config.heads = 3;
    EXPECT_EQ(Model::Create(config).status().message(),
              "heads 3: does not divide the 5 hidden columns");
  }
}

TEST(ModelTest, GinHasPygsNames) {
  ModelConfig config = Config();
  config.kind = ModelKind::kGin;
  config.layers = 1;
  EXPECT_EQ(Names(*Model::Create(config).value()),
            (std::vector<std::string>{
                "convs.0.nn.lins.0.weight", "convs.0.nn.lins.0.bias",
                "convs.0.nn.lins.1.weight", "convs.0.nn.lins.1.bias",
                "convs.0.eps"}));
}

// The seeds are of type b.
GraphShape TwoTypes() {
  GraphShape shape;
  shape.types = {{"a", 9, 0}, {"b", 5, 4}, {"unseen", 1000, 0}};
  shape.relations = {
      {"a__to__b", 0, 1}, {"b__to__a", 1, 0}, {"b__to__unseen", 1, 2}};
  shape.seed_type = 1;
  return shape;
}

TEST(ModelTest, OmitsLayersThatCannotReachTheSeeds) {
  EXPECT_EQ(Names(*Model::Create(Config(), TwoTypes()).value()),
            (std::vector<std::string>{"emb_dict.a.weight", "lin_dict.b.weight",
                                      "lin_dict.b.bias",
                                      "convs.0.convs.a__to__b.lin_l.weight",
                                      "convs.0.convs.a__to__b.lin_l.bias",
                                      "convs.0.convs.a__to__b.lin_r.weight",
                                      "convs.0.convs.b__to__a.lin_l.weight",
                                      "convs.0.convs.b__to__a.lin_l.bias",
                                      "convs.0.convs.b__to__a.lin_r.weight",
                                      "convs.1.convs.a__to__b.lin_l.weight",
                                      "convs.1.convs.a__to__b.lin_l.bias",
                                      "convs.1.convs.a__to__b.lin_r.weight"}));
}

TEST(ModelTest, RefusesEmbeddingsThatAreTooLarge) {
  GraphShape shape = TwoTypes();
  shape.types[0].count = int64_t{1} << 27;
  const absl::Status status = Model::Create(Config(), shape).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "too_many_embeddings") << status;
}

TEST(ModelTest, RefusesSeedsThatNoRelationLeadsTo) {
  GraphShape shape = TwoTypes();
  shape.relations.erase(shape.relations.begin());
  EXPECT_EQ(Model::Create(Config(), shape).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ModelTest, SelfLoopsReplaceTheNodesOwn) {
  const Neighbors looped =
      WithSelfLoops({Ints({0, 3, 4, 4}), Ints({0, 1, 0, 2}), {}, {}});
  EXPECT_TRUE(looped.indptr.equal(Ints({0, 2, 4, 5})));
  EXPECT_TRUE(looped.index.equal(Ints({1, 0, 2, 1, 2})));
}

TEST(ModelTest, StartsWithinPygsBounds) {
  ModelConfig config = Config();
  config.in = 400;
  const auto model = Model::Create(config).value();
  const at::Tensor weight = model->parameters().parameters()[0].tensor;
  EXPECT_NEAR(weight.abs().max().item().toDouble(), 1 / std::sqrt(400.0), 1e-3);
  EXPECT_NEAR(weight.mean().item().toDouble(), 0, 5e-3);
}

TEST(ModelTest, RefusesADropoutOf1) {
  ModelConfig config = Config();
  config.dropout = 1.0;
  EXPECT_EQ(Model::Create(config).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Each layer has its own stream of dropout draws, so their number is limited.
TEST(ModelTest, LimitsLayers) {
  ModelConfig config = Config();
  config.layers = kMaxLayers;
  EXPECT_TRUE(Model::Create(config).ok());
  config.layers = kMaxLayers + 1;
  const absl::Status status = Model::Create(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "layers 256 is out of range: 1 to 255");
}

// The seeds have the lists 0 <- {1, 2} and 1 <- {2, 3}; 2 was expanded but has
// no neighbours.
Subgraph Tree() {
  Subgraph graph;
  graph.nodes = {
      {at::arange(12, at::kFloat).view({4, 3}).div(10), {}, {0, 1, 3, 4}}};
  graph.neighbors = {{Ints({0, 2, 4, 4}), Ints({1, 2, 2, 3}), {}, {}}};
  return graph;
}

TEST(ModelTest, ComputesOnlySeedRows) {
  const auto model = Model::Create(Config()).value();
  EXPECT_EQ(model->Forward(Tree(), {}).sizes(), at::IntArrayRef({1, 2}));
}

TEST(ModelTest, MeanOfNoNeighborsIsZero) {
  const Subgraph tree = Tree();
  const at::Tensor x = tree.nodes[0].x;
  const at::Tensor mean = MeanOfNeighbors(x, FirstRows(tree.neighbors[0], 3));
  EXPECT_TRUE(mean[0].allclose((x[1] + x[2]) / 2));
  EXPECT_TRUE(mean[1].allclose((x[2] + x[3]) / 2));
  EXPECT_EQ(mean[2].abs().sum().item().toDouble(), 0);
}

TEST(ModelTest, RowsPastTheExpandedHaveEmptyLists) {
  const Neighbors five = FirstRows(Tree().neighbors[0], 5);
  EXPECT_TRUE(five.indptr.equal(Ints({0, 2, 4, 4, 4, 4})));
}

TEST(ModelTest, SampledGcnWeightsMatchPyg) {
  Neighbors lists{Ints({0, 3, 4}), Ints({0, 1, 2, 0}), {}, {}};
  GcnWeights(GcnNorm::kSampled, 3, {}, lists);
  // Node 0: its loop is replaced, plus two others: degree 3. Node 1: 2. Node 2:
  // 1.
  const float a = 1 / std::sqrt(3.0f), b = 1 / std::sqrt(2.0f);
  const float* edge = lists.edge_weight.const_data_ptr<float>();
  const float* self = lists.self_weight.const_data_ptr<float>();
  EXPECT_FLOAT_EQ(edge[0], 0);
  EXPECT_FLOAT_EQ(edge[1], a * b);
  EXPECT_FLOAT_EQ(edge[2], a);
  EXPECT_FLOAT_EQ(edge[3], b * a);
  EXPECT_FLOAT_EQ(self[0], a * a);
  EXPECT_FLOAT_EQ(self[2], 1);
}

TEST(ModelTest, FullGcnScalesPicksToTheTrueDegree) {
  Neighbors lists{Ints({0, 2}), Ints({1, 2}), {}, {}};
  GcnWeights(GcnNorm::kFull, 3, Ints({8, 3, 0}), lists);
  const float* edge = lists.edge_weight.const_data_ptr<float>();
  EXPECT_FLOAT_EQ(edge[0], 4.0f / std::sqrt(9.0f * 4.0f));
  EXPECT_FLOAT_EQ(edge[1], 4.0f / std::sqrt(9.0f * 1.0f));
  EXPECT_FLOAT_EQ(lists.self_weight.const_data_ptr<float>()[0], 1 / 9.0f);
}

TEST(ModelTest, OneRowIsNormalizedByRunningStatistics) {
  ParameterSet parameters;
  const auto norm = Norm::Create(NormKind::kBatch, "n", 3, parameters);
  const at::Tensor row = at::ones({1, 3});
  EXPECT_TRUE(norm->Forward(row, true).allclose(row, 1e-4));
  for (const NamedTensor& buffer : parameters.buffers()) {
    if (buffer.name == "n.module.num_batches_tracked") {
      EXPECT_EQ(buffer.tensor.item().toLong(), 0);
    }
  }
}

}  // namespace
}  // namespace millrace
