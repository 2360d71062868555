// SPDX-License-Identifier: Apache-2.0
#include "client/nn/script_forward.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <string>
#include <utility>
#include <vector>

#include "client/nn/model.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::Ints;

// Types a and b have features, and c has none. Seeds are of type b.
GraphShape TypedShape() {
  GraphShape shape;
  shape.types = {{"a", 9, 1}, {"b", 5, 2}, {"c", 7, 0}};
  shape.relations = {
      {"a__to__b", 0, 1}, {"b__to__c", 1, 2}, {"c__to__a", 2, 0}};
  shape.seed_type = 1;
  return shape;
}

// Whether a module's `forward` with these arguments fits, and the name of its
// parameter for edge features, if any.
std::pair<bool, std::string> Fits(const std::string& arguments,
                                  const GraphShape& shape) {
  const c10::FunctionSchema schema =
      torch::jit::parseSchema("forward(Any self" + arguments + ") -> Tensor");
  const c10::Argument* edges = nullptr;
  const bool fits = FitsForward(schema, shape, edges);
  return {fits, edges == nullptr ? "" : edges->name()};
}

using Fit = std::pair<bool, std::string>;

TEST(ScriptForwardTest, HomogeneousGraphsAreMatrices) {
  const GraphShape shape = GraphShape::Homogeneous(2);
  EXPECT_EQ(Fits(", Tensor x, Tensor e", shape), Fit(true, ""));
  EXPECT_EQ(Fits(", Tensor x", shape), Fit(false, ""));
  EXPECT_EQ(Fits("", shape), Fit(false, ""));
  EXPECT_EQ(Fits(", Tensor x, int e", shape), Fit(false, ""));
  EXPECT_EQ(Fits(", Dict(str, Tensor) x, Tensor e", shape), Fit(false, ""));
  EXPECT_EQ(Fits(", Tensor x, Tensor e, Tensor edge_attr", shape),
            Fit(true, "edge_attr"));
  EXPECT_EQ(Fits(", Tensor x, Tensor e, Tensor? edge_attr2=None", shape),
            Fit(true, "edge_attr2"));
  EXPECT_EQ(Fits(", Tensor x, Tensor e, int edge_attr", shape),
            Fit(false, "edge_attr"));
  // The first two are not known by their names.
  EXPECT_EQ(Fits(", Tensor x, Tensor edge_attr", shape), Fit(true, ""));
  // Others need defaults.
  EXPECT_EQ(Fits(", Tensor x, Tensor e, Tensor batch", shape), Fit(false, ""));
  EXPECT_EQ(
      Fits(", Tensor x, Tensor e, int n=3, Tensor? edge_attr=None", shape),
      Fit(true, "edge_attr"));
}

TEST(ScriptForwardTest, OtherGraphsAreDictionaries) {
  const GraphShape shape = TypedShape();
  const std::string dict = ", Dict(str, Tensor) ";
  EXPECT_EQ(Fits(dict + "x" + dict + "e", shape), Fit(true, ""));
  EXPECT_EQ(Fits(dict + "x" + dict + "e" + dict + "edge_attr_dict", shape),
            Fit(true, "edge_attr_dict"));
  EXPECT_EQ(Fits(dict + "x, Tensor e", shape), Fit(false, ""));
  EXPECT_EQ(Fits(", Dict(int, Tensor) x" + dict + "e", shape), Fit(false, ""));
}

TEST(ScriptForwardTest, SignaturesAreShownWithoutTheModule) {
  EXPECT_EQ(ForwardText(torch::jit::parseSchema(
                "forward(Any self, Tensor x, Dict(str, Tensor) e) -> Tensor")),
            "forward(x: Tensor, e: Dict[str, Tensor])");
  EXPECT_EQ(WantedForward(GraphShape::Homogeneous(1)),
            "forward(x: Tensor, edge_index: Tensor[, edge_attr: Tensor])");
  EXPECT_EQ(WantedForward(TypedShape()),
            "forward(x_dict: Dict[str, Tensor], edge_index_dict: Dict[str, "
            "Tensor][, edge_attr_dict: Dict[str, Tensor]])");
}

TEST(ScriptForwardTest, EdgeFeaturesComeWithRelationsThatArePassed) {
  GraphShape shape = TypedShape();
  EXPECT_FALSE(GivesEdgeFeatures(shape));
  // Relations from and to types without features are not passed.
  shape.relations[1].features = shape.relations[2].features = 4;
  EXPECT_FALSE(GivesEdgeFeatures(shape));
  shape.relations[0].features = 1;
  EXPECT_TRUE(GivesEdgeFeatures(shape));
  shape = GraphShape::Homogeneous(1);
  EXPECT_FALSE(GivesEdgeFeatures(shape));
  shape.relations[0].features = 1;
  EXPECT_TRUE(GivesEdgeFeatures(shape));
}

Subgraph TypedGraph() {
  Subgraph graph;
  graph.nodes = {{at::ones({3, 1}), {}, {0, 0, 3}},
                 {at::ones({2, 2}), {}, {0, 2, 2}},
                 {{}, {}, {0, 0, 1}}};
  graph.neighbors = {{Ints({0, 2, 3}), Ints({1, 2, 0}), {}, {}},
                     {Ints({0, 1}), Ints({0}), {}, {}},
                     {Ints({0}), Ints({}), {}, {}}};
  graph.edge_features = {at::ones({3, 4}), at::ones({1, 4}), at::ones({0, 4})};
  return graph;
}

TEST(ScriptForwardTest, InputsAreWhatHasFeatures) {
  const Subgraph graph = TypedGraph();
  const std::vector<c10::IValue> inputs = ForwardInputs(TypedShape(), graph);
  ASSERT_EQ(inputs.size(), 2u);
  const auto x = inputs[0].toGenericDict();
  EXPECT_EQ(x.size(), 2u);
  EXPECT_TRUE(x.at("a").toTensor().is_same(graph.nodes[0].x));
  EXPECT_TRUE(x.at("b").toTensor().is_same(graph.nodes[1].x));
  const auto edges = inputs[1].toGenericDict();
  EXPECT_EQ(edges.size(), 1u);
  EXPECT_TRUE(
      edges.at("a__to__b")
          .toTensor()
          .equal(at::tensor({1, 2, 0, 0, 0, 1}, at::kLong).view({2, 3})));
  const auto features = EdgeFeatures(TypedShape(), graph).toGenericDict();
  EXPECT_EQ(features.size(), 1u);
  EXPECT_TRUE(
      features.at("a__to__b").toTensor().is_same(graph.edge_features[0]));
}

TEST(ScriptForwardTest, RowsAreFoundByTheirType) {
  GraphShape shape = TypedShape();
  const at::Tensor rows = at::ones({2, 3});
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("b", rows);
  EXPECT_TRUE(RowsOf(dict, shape, 1).is_same(rows));
  EXPECT_TRUE(RowsOf(rows, shape, 1).is_same(rows));
  const auto refused = [&](const c10::IValue& result, TypeIndex type) {
    try {
      RowsOf(result, shape, type);
      return std::string();
    } catch (const c10::Error& error) {
      return error.msg();
    }
  };
  EXPECT_THAT(refused(dict, 0), HasSubstr("no rows of node type a"));
  EXPECT_THAT(refused(int64_t{3}, 1),
              HasSubstr("the result is a Int, not a Tensor or Dict[str, "
                        "Tensor]"));
  EXPECT_THAT(refused(rows, 0), HasSubstr("rows of two node types are needed"));
  // One matrix is enough for both ends of edges between nodes of one type.
  shape.source_type = 1;
  EXPECT_EQ(refused(rows, 1), "");
  shape.source_type = 0;
  EXPECT_THAT(refused(rows, 1),
              HasSubstr("the result is one Tensor, but rows of two node types "
                        "are needed"));
  shape = GraphShape::Homogeneous(2);
  EXPECT_THAT(refused(dict, 0), HasSubstr("GenericDict, not a Tensor"));
}

TEST(ScriptForwardTest, SmallestGraphHasTwoNodesThatListEachOther) {
  GraphShape shape = TypedShape();
  shape.relations[0].features = 5;
  const Subgraph graph = SmallestGraph(shape);
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_TRUE(graph.nodes[1].x.equal(at::zeros({2, 2})));
  EXPECT_EQ(graph.nodes[1].hop_offsets, (std::vector<uint32_t>{0, 2, 2}));
  ASSERT_EQ(graph.neighbors.size(), 3u);
  EXPECT_TRUE(graph.neighbors[2].indptr.equal(Ints({0, 1, 2})));
  EXPECT_TRUE(graph.neighbors[2].index.equal(Ints({1, 0})));
  EXPECT_TRUE(graph.edge_features[0].equal(at::zeros({2, 5})));
  EXPECT_FALSE(graph.edge_features[1].defined());
}

}  // namespace
}  // namespace millrace
