// SPDX-License-Identifier: Apache-2.0
// Models of whole graphs, compared with dense matrices.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/model.h"
#include "client/train/task/minibatch.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

constexpr int64_t kNodes = 7;
constexpr int64_t kGraphs = 3;

// Three graphs of 3, 1 and 3 nodes; one edge occurs twice.
const std::vector<std::pair<int64_t, int64_t>> kEdges = {
    {0, 1}, {1, 0}, {1, 2}, {0, 1}, {4, 5}, {6, 5}, {5, 4}};
const std::vector<int64_t> kGraphOf = {0, 0, 0, 1, 2, 2, 2};

testing::TestGraph Collection() {
  testing::TestGraph graph;
  graph.types.push_back(
      {.count = kNodes, .feature = testing::RampFeature(kNodes, 3)});
  graph.types.push_back({.name = "graph",
                         .count = kGraphs,
                         .label = Array::Adopt(std::vector<int64_t>{1, 0, 1})});
  graph.relations.push_back({.edges = kEdges});
  std::vector<std::pair<int64_t, int64_t>> members;
  for (int64_t v = 0; v < kNodes; ++v) members.emplace_back(v, kGraphOf[v]);
  graph.relations.push_back({.name = "in", .dst = "graph", .edges = members});
  graph.splits.push_back({.type = "graph", .name = "train", .ids = {0, 1, 2}});
  return graph;
}

// [kNodes, kNodes]: how often j occurs in i's in-list, plus 1 for i itself.
at::Tensor OwnAndNeighbors() {
  at::Tensor matrix = at::eye(kNodes);
  for (const auto& [src, dst] : kEdges) matrix[dst][src] += 1;
  return matrix;
}

at::Tensor Members() {
  at::Tensor matrix = at::zeros({kGraphs, kNodes});
  for (int64_t v = 0; v < kNodes; ++v) matrix[kGraphOf[v]][v] = 1;
  return matrix;
}

class GraphModelTest : public ::testing::TestWithParam<int> {
 protected:
  // The model's logits for graphs 2, 0, 1 and 2 again.
  at::Tensor Logits(Model& model) {
    const auto source = testing::OpenGraph(Collection(), GetParam());
    JobSpec spec;
    spec.seed_kind = SeedKind::kGraph;
    const ResolvedJob job = ResolveJob(spec, source->manifest()).value();
    BatchRequest request;
    request.explicit_seeds.emplace().ids = {2, 0, 1, 2};
    const Batch batch = source->Make(job, request).value();
    const Minibatch minibatch = MakeMinibatch(batch, model).value();
    EXPECT_TRUE(minibatch.labels.equal(at::tensor({1, 1, 0, 1}, at::kLong)));
    return minibatch.OfSeeds(model.Forward(minibatch.graph, Pass{}));
  }

  static std::unique_ptr<Model> MakeModel(const ModelConfig& config) {
    const Manifest manifest =
        testing::TestStore(Collection()).Open()->manifest();
    return Model::Create(config,
                         GraphShape::OfGraphs(manifest.schema, 1).value())
        .value();
  }

  static at::Tensor Parameter(const Model& model, const std::string& name) {
    for (const NamedTensor& named : model.parameters().parameters()) {
      if (named.name == name) return named.tensor.detach();
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  static at::Tensor Linear(const Model& model, const std::string& name,
                           const at::Tensor& x) {
    return at::linear(x, Parameter(model, name + ".weight"),
                      Parameter(model, name + ".bias"));
  }

  static at::Tensor Features() {
    at::Tensor x = at::empty({kNodes, 3});
    for (int64_t v = 0; v < kNodes; ++v) {
      for (int64_t c = 0; c < 3; ++c) {
        x[v][c] = static_cast<double>(v) + static_cast<double>(c) / 8;
      }
    }
    return x;
  }

  static at::Tensor OfSeeds(const at::Tensor& graphs) {
    return graphs.index_select(0, at::tensor({2, 0, 1, 2}, at::kLong));
  }
};

// The simplified GIN of DGL's tutorial: linear convolutions, sums, no head.
TEST_P(GraphModelTest, LinearGinWithSumsEqualsDenseMatrices) {
  ModelConfig config;
  config.kind = ModelKind::kGin;
  config.hidden = 4;
  config.out = 2;
  config.gin_mlp = 1;
  config.graph_head = false;
  const std::unique_ptr<Model> model = MakeModel(config);
  const at::Tensor near = OwnAndNeighbors();
  const at::Tensor hidden =
      at::relu(Linear(*model, "convs.0.nn", near.matmul(Features())));
  const at::Tensor expected =
      Members().matmul(Linear(*model, "convs.1.nn", near.matmul(hidden)));
  EXPECT_TRUE(at::allclose(Logits(*model), OfSeeds(expected), 1e-5, 1e-4));
}

TEST_P(GraphModelTest, SageWithMeansAndHeadEqualsDenseMatrices) {
  ModelConfig config;
  config.kind = ModelKind::kSage;
  config.hidden = 4;
  config.out = 2;
  config.layers = 1;
  config.aggregation = Aggregation::kSum;
  config.readout = Aggregation::kMean;
  const std::unique_ptr<Model> model = MakeModel(config);
  const at::Tensor x = Features();
  const at::Tensor neighbors = (OwnAndNeighbors() - at::eye(kNodes)).matmul(x);
  const at::Tensor rows =
      Linear(*model, "convs.0.lin_l", neighbors) +
      at::linear(x, Parameter(*model, "convs.0.lin_r.weight"));
  const at::Tensor members = Members();
  const at::Tensor pooled =
      members.matmul(rows) / members.sum(1, /*keepdim=*/true);
  const at::Tensor expected = Linear(
      *model, "head.lins.1", at::relu(Linear(*model, "head.lins.0", pooled)));
  EXPECT_TRUE(at::allclose(Logits(*model), OfSeeds(expected), 1e-5, 1e-4));
}

INSTANTIATE_TEST_SUITE_P(Partitions, GraphModelTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace millrace
