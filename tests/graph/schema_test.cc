// SPDX-License-Identifier: Apache-2.0
#include "common/graph/schema.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/graph/partition_book.h"

namespace millrace {
namespace {

Schema TwoTypes() {
  Schema schema;
  schema.node_types = {{.name = "a", .count = 3, .has_time = true},
                       {.name = "b", .count = 5}};
  schema.relations = {{.src = 0,
                       .name = "r",
                       .dst = 1,
                       .edge_count = 2,
                       .max_edge_id = 1,
                       .has_in = true,
                       .has_out = true,
                       .time = ListTime::kNeighbor}};
  return schema;
}

TEST(ParseRelationName, SplitsAtFirstAndLastSeparator) {
  const auto parts = ParseRelationName("paper__cited__by__author");
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->src, "paper");
  EXPECT_EQ(parts->name, "cited__by");
  EXPECT_EQ(parts->dst, "author");
  for (const char* odd :
       {"", "a", "a__b", "__a__b", "a__b__", "a____b", "______", "a___b"}) {
    EXPECT_FALSE(ParseRelationName(odd).ok()) << odd;
  }
}

TEST(Schema, FindsByNameAndListsNames) {
  const Schema schema = TwoTypes();
  EXPECT_EQ(schema.FindType("b").value(), 1);
  EXPECT_EQ(schema.FindRelation("a__r__b").value(), 0);
  const absl::Status type = schema.FindType("c").status();
  EXPECT_EQ(type.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(type.message().find("'a', 'b'"), absl::string_view::npos);
  EXPECT_EQ(schema.FindRelation("a__r__c").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Schema, IdDTypeGrowsAtTwoToThe32) {
  NodeType type{.name = "a", .count = (int64_t{1} << 32) - 1};
  EXPECT_EQ(type.id_dtype(), DType::kUint32);
  ++type.count;
  EXPECT_EQ(type.id_dtype(), DType::kUint64);
}

TEST(ListsHaveTime, FollowsTheNeighborsType) {
  Schema schema = TwoTypes();
  EXPECT_TRUE(ListsHaveTime(schema, 0, Direction::kIn));
  EXPECT_FALSE(ListsHaveTime(schema, 0, Direction::kOut));
  schema.relations[0].time = ListTime::kEdge;
  EXPECT_TRUE(ListsHaveTime(schema, 0, Direction::kOut));
  schema.relations[0].time = ListTime::kNone;
  EXPECT_FALSE(ListsHaveTime(schema, 0, Direction::kIn));
}

TEST(ValidateSchema, RefusesInvalidSchemas) {
  EXPECT_TRUE(ValidateSchema(TwoTypes()).ok());
  const std::vector<std::function<void(Schema&)>> changes = {
      [](Schema& s) { s.node_types.clear(); },
      [](Schema& s) { s.node_types[0].name = ""; },
      [](Schema& s) { s.node_types[0].name = "../x"; },
      [](Schema& s) { s.node_types[0].name = ".."; },
      [](Schema& s) { s.node_types[0].name = "x y"; },
      [](Schema& s) { s.node_types[0].name = std::string(81, 'x'); },
      [](Schema& s) { s.node_types[0].name = "x__y"; },
      [](Schema& s) { s.node_types[0].name = "x_"; },
      [](Schema& s) { s.node_types[1].name = "a"; },
      [](Schema& s) { s.node_types[0].count = -1; },
      [](Schema& s) {
        s.node_types[0].feature = {DType::kFloat32, {}};
      },
      [](Schema& s) {
        s.node_types[0].feature = {DType::kFloat32, {-1}};
      },
      [](Schema& s) {
        s.node_types[0].feature = {DType::kFloat32,
                                   {std::numeric_limits<int64_t>::max()}};
      },
      [](Schema& s) {
        s.node_types[0].feature = {DType::kUint8, {kMaxRowValues + 1}};
      },
      [](Schema& s) {
        s.node_types[0].label = {DType::kInt8, {}};
      },
      [](Schema& s) {
        s.node_types[0].label = {DType::kInt64, {1, 1}};
      },
      [](Schema& s) { s.relations[0].src = 2; },
      [](Schema& s) { s.relations[0].dst = -1; },
      [](Schema& s) { s.node_types[1].name = "_b"; },
      [](Schema& s) { s.relations[0].edge_count = -1; },
      [](Schema& s) { s.relations[0].edge_count = 3; },
      [](Schema& s) {
        s.relations[0].max_edge_id = std::numeric_limits<int64_t>::max();
      },
      [](Schema& s) { s.node_types[0].has_time = false; },
      [](Schema& s) { s.relations.push_back(s.relations[0]); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Schema schema = TwoTypes();
    changes[i](schema);
    EXPECT_EQ(ValidateSchema(schema).code(), absl::StatusCode::kInvalidArgument)
        << "change " << i;
  }
}

TEST(ValidateSchema, AcceptsTheLargestAllowedSchema) {
  const std::vector<std::function<void(Schema&)>> changes = {
      [](Schema& s) { s.node_types[0].name = std::string(80, 'x'); },
      [](Schema& s) { s.relations[0].name = std::string(80, 'x'); },
      [](Schema& s) { s.node_types[0].count = 0; },
      [](Schema& s) {
        s.node_types[0].feature = {DType::kUint8, {kMaxRowValues}};
      },
      [](Schema& s) { s.relations[0].edge_count = 0; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Schema schema = TwoTypes();
    changes[i](schema);
    const absl::Status status = ValidateSchema(schema);
    EXPECT_TRUE(status.ok()) << "change " << i << ": " << status;
  }
}

TEST(PartitionBook, FindsOwnersAcrossEmptyPartitions) {
  const PartitionBook book({0, 0, 3, 3, 7, 7});
  EXPECT_EQ(book.partition_count(), 5);
  EXPECT_EQ(book.node_count(), 7u);
  for (uint64_t id = 0; id < 7; ++id) {
    EXPECT_EQ(book.Owner(id), id < 3 ? 1 : 3) << id;
  }
  EXPECT_EQ(book.lookup_width(), 2u);
}

}  // namespace
}  // namespace millrace
