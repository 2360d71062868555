// SPDX-License-Identifier: Apache-2.0
#include "common/graph/schema.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

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
    const absl::Status status = ParseRelationName(odd).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        status.message(),
        std::string("'") + odd + "' is not a relation; write SRC__NAME__DST");
  }
}

TEST(Schema, FindsByNameAndListsNames) {
  const Schema schema = TwoTypes();
  EXPECT_EQ(schema.FindType("b").value(), 1);
  EXPECT_EQ(schema.FindRelation("a__r__b").value(), 0);
  EXPECT_EQ(
      schema.FindType("c\n").status(),
      absl::NotFoundError("no node type 'c\\n'; the node types are 'a', 'b'"));
  EXPECT_EQ(schema.FindRelation("a__r__c\t").status(),
            absl::NotFoundError(
                "no relation 'a__r__c\\t'; the relations are 'a__r__b'"));
  EXPECT_EQ(Schema().FindRelation("x").status().message(),
            "no relation 'x'; there are none");
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

constexpr std::string_view kNames =
    "' cannot name a node type, relation or split: 1 to 80 ASCII characters, "
    "without spaces or slashes, not starting with '.'";

TEST(ValidateSchema, RefusesInvalidSchemas) {
  EXPECT_TRUE(ValidateSchema(TwoTypes()).ok());
  const std::string long_name(81, 'x');
  const auto bad_name = [](std::string_view name) {
    return "'" + std::string(name) + std::string(kNames);
  };
  const auto edges = [](const char* numbers) {
    return std::string("relation 'a__r__b' has ") + numbers;
  };
  struct Change {
    std::function<void(Schema&)> change;
    std::string message;
  };
  const std::vector<Change> changes = {
      {[](Schema& s) { s.node_types.clear(); }, "there is no node type"},
      {[](Schema& s) { s.node_types[0].name = ""; }, bad_name("")},
      {[](Schema& s) { s.node_types[0].name = "../x"; }, bad_name("../x")},
      {[](Schema& s) { s.node_types[0].name = ".."; }, bad_name("..")},
      {[](Schema& s) { s.node_types[0].name = ".x"; }, bad_name(".x")},
      {[](Schema& s) { s.node_types[0].name = "x y"; }, bad_name("x y")},
      {[](Schema& s) { s.node_types[0].name = "x\\y"; }, bad_name("x\\\\y")},
      {[](Schema& s) { s.node_types[0].name = "x\x7f"; }, bad_name("x\\x7f")},
      {[](Schema& s) { s.relations[0].name = "x/y"; }, bad_name("x/y")},
      {[&](Schema& s) { s.node_types[0].name = long_name; },
       bad_name(std::string(80, 'x'))},
      {[](Schema& s) { s.node_types[0].name = "x__y"; },
       "relation 'x__y__r__b' would be read as 'x', 'y__r', 'b'; names must "
       "not begin or end with '_'"},
      {[](Schema& s) { s.node_types[0].name = "x_"; },
       "relation 'x___r__b' would be read as 'x', '_r', 'b'; names must not "
       "begin or end with '_'"},
      {[](Schema& s) { s.node_types[1].name = "_b"; },
       "relation 'a__r___b' would be read as 'a', 'r_', 'b'; names must not "
       "begin or end with '_'"},
      {[](Schema& s) { s.node_types[1].name = "a"; }, "'a' occurs twice"},
      {[](Schema& s) { s.node_types[1].count = -1; },
       "node type 'b' has -1 nodes"},
      {[](Schema& s) {
         s.node_types[0].feature = {DType::kFloat32, {}};
       },
       "feature of 'a' has rows of 0 dimensions; they must have 1"},
      {[](Schema& s) {
         s.relations[0].feature = {DType::kFloat32, {2, 3}};
       },
       "feature of 'a__r__b' has rows of 2 dimensions; they must have 1"},
      {[](Schema& s) {
         s.node_types[0].feature = {DType::kFloat32, {-1}};
       },
       "feature of 'a' has rows of shape (-1); a row has at most 1048576 "
       "values"},
      {[](Schema& s) {
         s.node_types[0].feature = {DType::kFloat32,
                                    {std::numeric_limits<int64_t>::max()}};
       },
       "feature of 'a' has rows of shape (9223372036854775807); a row has at "
       "most 1048576 values"},
      {[](Schema& s) {
         s.node_types[1].feature = {DType::kUint8, {1048577}};
       },
       "feature of 'b' has rows of shape (1048577); a row has at most 1048576 "
       "values"},
      {[](Schema& s) {
         s.node_types[1].label = {DType::kUint8, {1048577}};
       },
       "label of 'b' has rows of shape (1048577); a row has at most 1048576 "
       "values"},
      {[](Schema& s) {
         s.node_types[0].label = {DType::kInt8, {}};
       },
       "label of 'a' is int8 with rows of 0 dimensions; it must be int64 or "
       "float32, or a matrix"},
      {[](Schema& s) {
         s.node_types[0].label = {DType::kInt64, {1, 1}};
       },
       "label of 'a' is int64 with rows of 2 dimensions; it must be int64 or "
       "float32, or a matrix"},
      {[](Schema& s) { s.relations[0].src = 2; },
       "relation 'r' has a node type that does not exist"},
      {[](Schema& s) { s.relations[0].src = -1; },
       "relation 'r' has a node type that does not exist"},
      {[](Schema& s) { s.relations[0].dst = 2; },
       "relation 'r' has a node type that does not exist"},
      {[](Schema& s) { s.relations[0].dst = -1; },
       "relation 'r' has a node type that does not exist"},
      {[](Schema& s) { s.relations[0].edge_count = -1; },
       edges("-1 edges and the largest edge id 1")},
      {[](Schema& s) { s.relations[0].edge_count = 3; },
       edges("3 edges and the largest edge id 1")},
      {[](Schema& s) {
         s.relations[0].edge_count = 0;
         s.relations[0].max_edge_id = -2;
       },
       edges("0 edges and the largest edge id -2")},
      {[](Schema& s) { s.relations[0].max_edge_id = int64_t{1} << 62; },
       edges("2 edges and the largest edge id 4611686018427387904")},
      {[](Schema& s) { s.node_types[0].has_time = false; },
       "relation 'a__r__b' takes its times from neighbours that have none"},
      {[](Schema& s) { s.relations.push_back(s.relations[0]); },
       "'a__r__b' occurs twice"},
  };
  for (const Change& change : changes) {
    Schema schema = TwoTypes();
    change.change(schema);
    const absl::Status status = ValidateSchema(schema);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), change.message);
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
      [](Schema& s) {
        s.relations[0].edge_count = 0;
        s.relations[0].max_edge_id = -1;
      },
      [](Schema& s) { s.relations[0].max_edge_id = (int64_t{1} << 62) - 1; },
      [](Schema& s) { s.node_types[0].name = "!~"; },
      [](Schema& s) {
        s.node_types[0].label = {DType::kFloat32, {}};
      },
      [](Schema& s) {
        s.node_types[0].label = {DType::kInt8, {1048576}};
      },
      // The times of destinations are enough.
      [](Schema& s) {
        s.node_types[0].has_time = false;
        s.node_types[1].has_time = true;
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Schema schema = TwoTypes();
    changes[i](schema);
    const absl::Status status = ValidateSchema(schema);
    EXPECT_TRUE(status.ok()) << "change " << i << ": " << status;
  }
}

TEST(ColumnSpec, BytesOfARowAreThoseOfAllItsValues) {
  EXPECT_EQ((ColumnSpec{DType::kFloat16, {3, 5}}).row_bytes(), 30u);
  EXPECT_EQ((ColumnSpec{DType::kInt64, {}}).row_bytes(), 8u);
}

TEST(ColumnSpec, ShapeOfAnArrayBeginsWithItsRows) {
  EXPECT_EQ((ColumnSpec{DType::kFloat16, {3, 5}}).ShapeOf(7),
            (std::vector<int64_t>{7, 3, 5}));
  EXPECT_EQ((ColumnSpec{DType::kInt64, {}}).ShapeOf(0),
            (std::vector<int64_t>{0}));
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
