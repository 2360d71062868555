// SPDX-License-Identifier: Apache-2.0
// What a Model does around its layers, compared with the same steps one by one.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/layer_spec.h"
#include "client/nn/model.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;

// Seeds are of type b, whose nodes have features; a learns a row for each node.
GraphShape AandB() {
  GraphShape shape;
  shape.types = {{"a", 6, 0}, {"b", 9, 3}};
  shape.relations = {{"a__to__b", 0, 1}, {"b__to__a", 1, 0}};
  shape.seed_type = 1;
  return shape;
}

// Two seeds; 3 nodes of a and 1 of b one hop away, 2 of b two hops away.
Subgraph AandBGraph() {
  Subgraph graph;
  graph.nodes.resize(2);
  graph.nodes[0].original_id = at::tensor({5, 0, 3}, at::kLong);
  graph.nodes[0].hop_offsets = {0, 0, 3, 3};
  graph.nodes[1].x = Initializer(4).Uniform({5, 3}, 2);
  graph.nodes[1].hop_offsets = {0, 2, 3, 5};
  graph.neighbors = {{Ints({0, 2, 3, 4}), Ints({0, 1, 2, 2}), {}, {}},
                     {Ints({0, 1, 3, 5}), Ints({0, 3, 4, 1, 2}), {}, {}}};
  return graph;
}

ModelConfig AandBConfig() {
  ModelConfig config;
  config.hidden = 4;
  config.out = 2;
  config.layers = 2;
  return config;
}

at::Tensor ParameterOf(const Model& model, const std::string& name) {
  for (const NamedTensor& named : model.parameters().State()) {
    if (named.name == name) return named.tensor.detach();
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

at::Tensor SageOf(const Model& model, const std::string& prefix,
                  const at::Tensor& source, const at::Tensor& target,
                  const Neighbors& lists) {
  return at::linear(MeanOfNeighbors(source, lists),
                    ParameterOf(model, prefix + ".lin_l.weight"),
                    ParameterOf(model, prefix + ".lin_l.bias")) +
         at::linear(target, ParameterOf(model, prefix + ".lin_r.weight"));
}

at::Tensor LayerNormOf(const Model& model, const std::string& name,
                       const at::Tensor& rows) {
  return at::layer_norm(rows, {rows.size(1)},
                        ParameterOf(model, name + ".weight"),
                        ParameterOf(model, name + ".bias"), 1e-5);
}

TEST(ModelForwardTest, TypesHaveTheirOwnInputsLayersNormsAndDropout) {
  ModelConfig config = AandBConfig();
  config.norm = NormKind::kLayer;
  config.dropout = 0.5;
  const auto model = Model::Create(config, AandB()).value();
  for (const char* type : {"a", "b"}) {
    const std::string norm = std::string("norms.0.") + type;
    ParameterOf(*model, norm + ".weight").copy_(Initializer(2).Uniform({4}, 1));
    ParameterOf(*model, norm + ".bias").copy_(Initializer(3).Uniform({4}, 1));
  }
  EXPECT_TRUE(model->reads_original_ids());
  const Subgraph graph = AandBGraph();
  const at::Tensor a0 = ParameterOf(*model, "emb_dict.a.weight")
                            .index_select(0, graph.nodes[0].original_id);
  const at::Tensor b0 =
      at::linear(graph.nodes[1].x, ParameterOf(*model, "lin_dict.b.weight"),
                 ParameterOf(*model, "lin_dict.b.bias"));
  EXPECT_TRUE(
      at::allclose(model->Input(0, {}, graph.nodes[0].original_id), a0));
  EXPECT_TRUE(at::allclose(model->Input(1, graph.nodes[1].x, {}), b0));

  // Layer 0 computes 3 rows of each type, layer 1 only the seeds.
  const at::Tensor a1 =
      SageOf(*model, "convs.0.convs.b__to__a", b0, a0, graph.neighbors[1]);
  const at::Tensor b1 = SageOf(*model, "convs.0.convs.a__to__b", a0,
                               b0.narrow(0, 0, 3), graph.neighbors[0]);
  const DropoutKey key{.seed = 8, .epoch = 2, .batch = 1};
  for (const bool training : {false, true}) {
    const auto after = [&](const at::Tensor& rows, const std::string& norm,
                           int place) {
      const at::Tensor relu = LayerNormOf(*model, norm, rows).relu();
      return training ? Dropout(relu, 0.5, key, place) : relu;
    };
    // 256 places for each type: as many as layers and what follows them.
    const at::Tensor want =
        SageOf(*model, "convs.1.convs.a__to__b", after(a1, "norms.0.a", 0),
               after(b1, "norms.0.b", 256).narrow(0, 0, 2),
               FirstRows(graph.neighbors[0], 2));
    const at::Tensor got = model->Forward(graph, {training, key});
    ASSERT_EQ(got.sizes(), want.sizes());
    EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6)) << training;
    const std::vector<at::Tensor> types =
        model->ForwardTypes(graph, {training, key});
    EXPECT_TRUE(types[1].equal(got));
    EXPECT_FALSE(types[0].defined());
  }
}

TEST(ModelForwardTest, OriginalIdsAreReadForEmbeddingsAlone) {
  GraphShape shape = AandB();
  EXPECT_TRUE(
      Model::Create(AandBConfig(), shape).value()->reads_original_ids());
  shape.types[0].features = 2;
  EXPECT_FALSE(
      Model::Create(AandBConfig(), shape).value()->reads_original_ids());
}

// Places 0 to 255 of type 0 are those of rows, and those of relation 0 follow.
TEST(ModelForwardTest, AttentionDropsAtPlacesOfItsOwn) {
  ModelConfig config;
  config.kind = ModelKind::kGat;
  config.in = 3;
  config.out = 4;
  config.layers = 1;
  config.dropout = 0.5;
  const auto model = Model::Create(config).value();
  const GraphShape shape = GraphShape::Homogeneous(3);
  ParameterSet set;
  Initializer initializer(config.seed);
  const auto conv = InfoOf(config.kind)
                        .make_conv({.config = config,
                                    .shape = shape,
                                    .prefix = "convs.0",
                                    .in = 3,
                                    .out = 4,
                                    .last = true,
                                    .dropout_place = 256},
                                   set, initializer);
  const Pass pass{.training = true, .dropout = {.seed = 3}};
  const at::Tensor x = Initializer(4).Uniform({9, 3}, 2);
  const Neighbors lists{Ints({0, 8}), Ints({1, 2, 3, 4, 5, 6, 7, 8}), {}, {}};
  const Subgraph graph{
      .nodes = {{x, {}, {0, 1, 9}}}, .neighbors = {lists}, .members = {}};
  EXPECT_TRUE(model->Forward(graph, pass)
                  .equal(conv->Forward(x, x.narrow(0, 0, 1), lists, pass)));
}

TEST(ModelForwardTest, HomogeneousFeaturesAreReadAsTheyAre) {
  ModelConfig config = AandBConfig();
  config.in = 3;
  config.layers = 1;
  const auto model = Model::Create(config).value();
  EXPECT_FALSE(model->reads_original_ids());
  Subgraph graph;
  graph.nodes = {{Initializer(4).Uniform({3, 3}, 2), {}, {0, 1, 3}}};
  graph.neighbors = {{Ints({0, 2}), Ints({1, 2}), {}, {}}};
  EXPECT_TRUE(model->Input(0, graph.nodes[0].x, {}).is_same(graph.nodes[0].x));
  // The last layer has neither relu nor dropout.
  const at::Tensor want =
      SageOf(*model, "convs.0", graph.nodes[0].x,
             graph.nodes[0].x.narrow(0, 0, 1), graph.neighbors[0]);
  EXPECT_TRUE(at::allclose(model->Forward(graph, {}), want, 1e-5, 1e-6));
}

// Rows that no layer changes go through all layers untouched.
TEST(ModelForwardTest, TypesThatNoRelationLeadsToKeepTheirRows) {
  GraphShape shape = AandB();
  shape.relations.pop_back();  // nothing leads to a
  const auto model = Model::Create(AandBConfig(), shape).value();
  Subgraph graph = AandBGraph();
  graph.neighbors.pop_back();
  const at::Tensor a0 = ParameterOf(*model, "emb_dict.a.weight")
                            .index_select(0, graph.nodes[0].original_id);
  const at::Tensor b0 = model->Input(1, graph.nodes[1].x, {}).detach();
  const at::Tensor b1 = SageOf(*model, "convs.0.convs.a__to__b", a0,
                               b0.narrow(0, 0, 3), graph.neighbors[0])
                            .relu();
  const at::Tensor want =
      SageOf(*model, "convs.1.convs.a__to__b", a0, b1.narrow(0, 0, 2),
             FirstRows(graph.neighbors[0], 2));
  EXPECT_TRUE(at::allclose(model->Forward(graph, {}), want, 1e-5, 1e-6));
}

TEST(ModelForwardTest, MoreLayersThanHopsReadTheNodesThatThereAre) {
  ModelConfig config = AandBConfig();
  config.in = 3;
  config.layers = 3;
  const auto model = Model::Create(config).value();
  Subgraph graph;
  graph.nodes = {{Initializer(4).Uniform({3, 3}, 2), {}, {0, 1, 3}}};
  graph.neighbors = {{Ints({0, 2}), Ints({1, 2}), {}, {}}};
  const at::Tensor x = graph.nodes[0].x;
  const Neighbors all = FirstRows(graph.neighbors[0], 3);
  const at::Tensor first = SageOf(*model, "convs.0", x, x, all).relu();
  const at::Tensor second = SageOf(*model, "convs.1", first, first, all).relu();
  const at::Tensor third = SageOf(*model, "convs.2", second,
                                  second.narrow(0, 0, 1), graph.neighbors[0]);
  EXPECT_TRUE(at::allclose(model->Forward(graph, {}), third, 1e-5, 1e-6));
}

TEST(ModelForwardTest, LayerBytesAreThoseOfTheRowsComputed) {
  const auto model = Model::Create(AandBConfig(), AandB()).value();
  // Layer 0: 3 and 3 rows of 4 columns; layer 1: 2 rows of 2 columns.
  EXPECT_EQ(model->LayerBytes(AandBGraph()), (3 + 3) * 4 * 4 + 2 * 2 * 4u);
  Subgraph graph = AandBGraph();
  graph.nodes[0].hop_offsets = {0, 2, 4, 4};
  EXPECT_EQ(model->LayerBytes(graph), (4 + 3) * 4 * 4 + 2 * 2 * 4u);
}

TEST(ModelForwardTest, WidthsAreThoseOfTheKindsOfSeeds) {
  ModelConfig config = AandBConfig();
  config.in = 3;
  const auto nodes = Model::Create(config).value();
  EXPECT_EQ(nodes->InputWidth(0), 3);
  EXPECT_EQ(nodes->InputWidth(1), 4);
  EXPECT_EQ(nodes->OutputWidth(0), 4);
  EXPECT_EQ(nodes->OutputWidth(1), 2);
  EXPECT_EQ(nodes->decoder(), nullptr);
  const auto types = Model::Create(AandBConfig(), AandB()).value();
  EXPECT_EQ(types->InputWidth(0), 4);
  const auto embedded =
      Model::Create(AandBConfig(),
                    [] {
                      GraphShape shape = GraphShape::Homogeneous(0);
                      shape.types[0].count = 7;
                      shape.relations.push_back(shape.relations[0]);
                      return shape;
                    }())
          .value();
  EXPECT_EQ(embedded->InputWidth(0), 4);
  // An MLP of hidden columns follows the layers of graph seeds.
  GraphShape shape = GraphShape::Homogeneous(3);
  shape.members = 1;
  EXPECT_EQ(Model::Create(config, shape).value()->OutputWidth(1), 4);
  config.graph_head = false;
  EXPECT_EQ(Model::Create(config, shape).value()->OutputWidth(1), 2);
}

TEST(ModelForwardTest, LayersComputeTheTypesThatReachTheSeeds) {
  const auto model = Model::Create(AandBConfig(), AandB()).value();
  EXPECT_TRUE(model->Computes(-1, 0));
  EXPECT_TRUE(model->Computes(0, 0));
  EXPECT_FALSE(model->Computes(1, 0));
  EXPECT_TRUE(model->Computes(1, 1));
  EXPECT_EQ(model->script(), nullptr);
  EXPECT_FALSE(model->reads_edge_features());
}

TEST(ModelForwardTest, KindsSayWhatTheyNeedOfBatches) {
  ModelConfig config = AandBConfig();
  config.in = 3;
  const auto made = [&](ModelKind kind) {
    config.kind = kind;
    return Model::Create(config).value();
  };
  EXPECT_TRUE(made(ModelKind::kGcn)->weighs_neighbors());
  EXPECT_FALSE(made(ModelKind::kSage)->weighs_neighbors());
  EXPECT_TRUE(made(ModelKind::kGat)->adds_self_loops());
  EXPECT_TRUE(made(ModelKind::kGatv2)->adds_self_loops());
  EXPECT_FALSE(made(ModelKind::kGin)->adds_self_loops());
  EXPECT_TRUE(made(ModelKind::kGat)->works_on_sources());
  EXPECT_FALSE(made(ModelKind::kRgcn)->works_on_sources());
  config.kind = ModelKind::kGat;
  EXPECT_FALSE(Model::Create(config, AandB()).value()->adds_self_loops());
}

TEST(ModelForwardTest, ParametersAreCountedWithoutTheirMemory) {
  ModelConfig config = AandBConfig();
  config.norm = NormKind::kBatch;
  // Embeddings of a, projection of b; layer 0 into both, layer 1 into b; norms.
  const int64_t sage = 2 * 4 * 4 + 4, last = 2 * 4 * 2 + 2;
  EXPECT_EQ(Model::CountParameters(config, AandB()).value(),
            6 * 4 + (3 * 4 + 4) + 2 * sage + last + 2 * 2 * 4);
  int64_t sum = 0;
  const auto model = Model::Create(config, AandB()).value();
  for (const NamedTensor& named : model->parameters().parameters()) {
    sum += named.tensor.numel();
  }
  EXPECT_EQ(sum, Model::CountParameters(config, AandB()).value());
  config.hidden = 1 << 20;
  EXPECT_EQ(
      Model::CountParameters(config, GraphShape::Homogeneous(1 << 20)).value(),
      int64_t{2} * (1 << 20) * (1 << 20) + (1 << 20) +
          int64_t{2} * 2 * (1 << 20) + 2 + 2 * (1 << 20));
  config.hidden = 0;
  EXPECT_FALSE(Model::CountParameters(config, AandB()).ok());
}

TEST(ModelForwardTest, CountsBeyondIntegersAreTheLargest) {
  ModelConfig config = AandBConfig();
  config.out = std::numeric_limits<int64_t>::max() / 2;
  EXPECT_EQ(Model::CountParameters(config, AandB()).value(),
            std::numeric_limits<int64_t>::max());
}

TEST(ModelForwardTest, EdgeSeedsHaveADecoderAndRowsOfBothEnds) {
  ModelConfig config = AandBConfig();
  config.out = config.hidden;
  config.decoder = DecoderKind::kDistMult;
  config.edge_types = 3;
  GraphShape shape = AandB();
  shape.source_type = 0;
  const auto model = Model::Create(config, shape).value();
  ASSERT_NE(model->decoder(), nullptr);
  EXPECT_EQ(ParameterOf(*model, "rel_emb.weight").sizes(),
            at::IntArrayRef({3, 4}));
  Subgraph graph = AandBGraph();
  graph.nodes[0].hop_offsets = {0, 1, 3, 3};
  const std::vector<at::Tensor> rows = model->ForwardTypes(graph, {});
  EXPECT_EQ(rows[0].sizes(), at::IntArrayRef({1, 4}));
  EXPECT_EQ(rows[1].sizes(), at::IntArrayRef({2, 4}));
}

TEST(ModelForwardTest, EmbeddingsAreTheRowsOfTheSeeds) {
  ModelConfig config = AandBConfig();
  config.kind = ModelKind::kEmbedding;
  config.layers = 0;
  config.decoder = DecoderKind::kDot;
  GraphShape shape = GraphShape::Homogeneous(0);
  shape.types[0].count = 5;
  const auto model = Model::Create(config, shape).value();
  Subgraph graph;
  graph.nodes = {{{}, at::tensor({4, 1}, at::kLong), {0, 2}}};
  graph.neighbors = {{Ints({0}), Ints({}), {}, {}}};
  EXPECT_TRUE(model->Forward(graph, {}).equal(
      ParameterOf(*model, "emb_dict.node.weight")
          .index_select(0, graph.nodes[0].original_id)));
  // Features are projected to the same width.
  shape.types[0].features = 3;
  EXPECT_EQ(
      ParameterOf(*Model::Create(config, shape).value(), "lin_dict.node.weight")
          .sizes(),
      at::IntArrayRef({4, 3}));
}

}  // namespace
}  // namespace millrace
