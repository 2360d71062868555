// SPDX-License-Identifier: Apache-2.0
#include "client/nn/graph_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ColumnSpec Floats(std::vector<int64_t> row_shape) {
  return {DType::kFloat32, std::move(row_shape)};
}

// Users buy items; items have a feature of one number per row, without columns,
// and edges have 3 columns.
Schema Shop() {
  Schema schema;
  schema.node_types = {{.name = "user", .count = 10, .feature = Floats({4})},
                       {.name = "item", .count = 20, .feature = Floats({})},
                       {.name = "shelf", .count = 5}};
  schema.relations = {
      {.src = 0, .name = "buys", .dst = 1, .feature = Floats({3})},
      {.src = 1, .name = "on", .dst = 2},
      {.src = 1, .name = "like", .dst = 1}};
  return schema;
}

TEST(GraphShapeTest, HasTheSchemasTypesAndColumns) {
  const GraphShape shape = GraphShape::Of(Shop(), 1, Direction::kIn);
  EXPECT_EQ(shape.seed_type, 1);
  EXPECT_FALSE(shape.source_type.has_value());
  EXPECT_EQ(shape.members, -1);
  ASSERT_EQ(shape.types.size(), 3u);
  EXPECT_EQ(shape.types[0].name, "user");
  EXPECT_EQ(shape.types[0].count, 10);
  EXPECT_EQ(shape.types[0].features, 4);
  EXPECT_EQ(shape.types[1].count, 20);
  EXPECT_EQ(shape.types[1].features, 0);  // not a matrix
  EXPECT_EQ(shape.types[2].features, 0);
  for (int t = 0; t < 3; ++t) EXPECT_EQ(shape.types[t].number, t);
}

TEST(GraphShapeTest, MessagesFlowFromNeighborsToTheOwnersOfLists) {
  const GraphShape in = GraphShape::Of(Shop(), 1, Direction::kIn);
  const GraphShape out = GraphShape::Of(Shop(), 1, Direction::kOut);
  ASSERT_EQ(in.relations.size(), 3u);
  ASSERT_EQ(out.relations.size(), 3u);
  EXPECT_EQ(in.relations[0].neighbors, 0);
  EXPECT_EQ(in.relations[0].lists, 1);
  EXPECT_EQ(out.relations[0].neighbors, 1);
  EXPECT_EQ(out.relations[0].lists, 0);
  for (const GraphShape& shape : {in, out}) {
    EXPECT_EQ(shape.relations[0].name, "user__buys__item");
    EXPECT_EQ(shape.relations[0].features, 3);
    EXPECT_EQ(shape.relations[1].features, 0);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(shape.relations[r].number, r);
  }
}

TEST(GraphShapeTest, BothEndsOfEdgeSeedsAreOutput) {
  const GraphShape shape = GraphShape::OfEdges(Shop(), 1, Direction::kOut);
  EXPECT_EQ(shape.seed_type, 2);
  EXPECT_EQ(shape.source_type, 1);
  EXPECT_FALSE(shape.IsOutput(0));
  EXPECT_TRUE(shape.IsOutput(1));
  EXPECT_TRUE(shape.IsOutput(2));
  EXPECT_EQ(shape.relations[0].lists, 0);  // of the direction
}

TEST(GraphShapeTest, HomogeneousIsOneTypeAndOneRelation) {
  GraphShape shape = GraphShape::Homogeneous(7);
  EXPECT_TRUE(shape.homogeneous());
  EXPECT_EQ(shape.types[0].name, "node");
  EXPECT_EQ(shape.types[0].features, 7);
  EXPECT_EQ(shape.types[0].count, 0);
  EXPECT_EQ(shape.relations[0].name, "node__to__node");
  EXPECT_TRUE(shape.IsOutput(0));
  shape.relations.push_back(shape.relations[0]);
  EXPECT_FALSE(shape.homogeneous());
  shape.relations.pop_back();
  shape.types.push_back({"other"});
  EXPECT_FALSE(shape.homogeneous());
}

// a -> b -> c -> d, with seeds of type d.
TEST(GraphShapeTest, EachLayerNeedsWhatTheNextOneReads) {
  GraphShape shape;
  shape.types = {{"a"}, {"b"}, {"c"}, {"d"}};
  shape.relations = {
      {"a__to__b", 0, 1}, {"b__to__c", 1, 2}, {"c__to__d", 2, 3}};
  shape.seed_type = 3;
  EXPECT_THAT(shape.NeededTypes(2),
              ElementsAre(ElementsAre(false, true, true, true),
                          ElementsAre(false, false, true, true),
                          ElementsAre(false, false, false, true)));
  EXPECT_THAT(shape.NeededTypes(0),
              ElementsAre(ElementsAre(false, false, false, true)));
  shape.source_type = 0;
  EXPECT_THAT(shape.NeededTypes(1),
              ElementsAre(ElementsAre(true, false, true, true),
                          ElementsAre(true, false, false, true)));
}

// Molecules: atoms and bonds among them; "other" edges have one end elsewhere.
Schema Molecules() {
  Schema schema;
  schema.node_types = {{.name = "word", .count = 3},
                       {.name = "atom", .count = 9, .feature = Floats({6})},
                       {.name = "graph", .count = 2}};
  schema.relations = {
      {.src = 0, .name = "names", .dst = 1},
      {.src = 1, .name = "needs", .dst = 0},
      {.src = 1, .name = "bond", .dst = 1, .feature = Floats({2})},
      {.src = 1, .name = "in", .dst = 2},
      {.src = 1, .name = "near", .dst = 1}};
  return schema;
}

TEST(GraphShapeTest, GraphsAreMadeOfTheirNodesAlone) {
  const auto made = GraphShape::OfGraphs(Molecules(), 2);
  ASSERT_TRUE(made.ok()) << made.status();
  const GraphShape& shape = *made;
  EXPECT_EQ(shape.members, 3);
  ASSERT_EQ(shape.types.size(), 1u);
  EXPECT_EQ(shape.types[0].name, "atom");
  EXPECT_EQ(shape.types[0].number, 1);
  EXPECT_EQ(shape.types[0].features, 6);
  EXPECT_EQ(shape.seed_type, 0);
  // Relations with only one end among the nodes are left out.
  ASSERT_EQ(shape.relations.size(), 2u);
  EXPECT_EQ(shape.relations[0].name, "atom__bond__atom");
  EXPECT_EQ(shape.relations[0].number, 2);
  EXPECT_EQ(shape.relations[0].features, 2);
  EXPECT_EQ(shape.relations[0].neighbors, 0);
  EXPECT_EQ(shape.relations[0].lists, 0);
  EXPECT_EQ(shape.relations[1].name, "atom__near__atom");
  EXPECT_EQ(shape.relations[1].number, 4);
}

TEST(GraphShapeTest, GraphsOfSeveralTypesAreUnimplemented) {
  Schema schema = Molecules();
  schema.relations.push_back({.src = 0, .name = "of", .dst = 2});
  const absl::Status status = GraphShape::OfGraphs(schema, 2).status();
  EXPECT_EQ(status, absl::UnimplementedError(
                        "graphs of type graph have nodes in several relations, "
                        "but training supports only one node type\nimport the "
                        "nodes as one type"));
}

TEST(GraphShapeTest, TheFirstOfSeveralMembersCountsToo) {
  Schema schema = Molecules();
  schema.relations = {{.src = 1, .name = "in", .dst = 2},
                      {.src = 0, .name = "of", .dst = 2}};
  EXPECT_TRUE(absl::IsUnimplemented(GraphShape::OfGraphs(schema, 2).status()));
}

TEST(GraphShapeTest, GraphsWithoutMembersHaveNoTypes) {
  Schema schema = Molecules();
  schema.relations.erase(schema.relations.begin() + 3);
  const auto made = GraphShape::OfGraphs(schema, 2);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->members, -1);
  EXPECT_THAT(made->types, IsEmpty());
  EXPECT_THAT(made->relations, IsEmpty());
}

}  // namespace
}  // namespace millrace
