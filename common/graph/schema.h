// SPDX-License-Identifier: Apache-2.0
// The schema of a graph: its node types and relations, with their columns. A
// homogeneous graph has one of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"

namespace millrace {

// Positions of node types and relations in the schema. Random numbers depend on
// them (docs/determinism.md), so the order must never change.
using TypeIndex = int;
using RelationIndex = int;

inline constexpr std::string_view kHomogeneousType = "node";

// Maximum number of values in a row of features or labels. Rows are held in
// memory, and a file without rows may claim any width.
inline constexpr int64_t kMaxRowValues = 1 << 20;

// The dtype of a column and the shape of one row: [d], or [] for scalars. The
// column is absent if the dtype is kNone.
struct ColumnSpec {
  DType dtype = DType::kNone;
  std::vector<int64_t> row_shape;

  bool present() const { return dtype != DType::kNone; }
  size_t row_bytes() const;
  // The shape of an array of `rows` rows.
  std::vector<int64_t> ShapeOf(int64_t rows) const;
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

struct NodeType {
  std::string name;
  int64_t count = 0;
  ColumnSpec feature = {};
  ColumnSpec label = {};
  bool has_time = false;
  bool has_hotness = false;

  // uint32 for fewer than 2^32 nodes, otherwise uint64.
  DType id_dtype() const;
  friend bool operator==(const NodeType&, const NodeType&) = default;
};

// Which time the lists of a relation carry and are sorted by: that of the edge,
// or that of the neighbour.
enum class ListTime { kNone, kEdge, kNeighbor };

struct Relation {
  TypeIndex src = 0;
  std::string name;
  TypeIndex dst = 0;
  int64_t edge_count = 0;
  int64_t max_edge_id = -1;
  bool has_in = false;   // in-lists are stored
  bool has_out = false;  // out-lists are stored
  bool has_weight = false;
  ListTime time = ListTime::kNone;
  bool has_type = false;
  ColumnSpec feature = {};

  friend bool operator==(const Relation&, const Relation&) = default;
};

struct Schema {
  std::vector<NodeType> node_types;
  std::vector<Relation> relations;

  bool homogeneous() const {
    return node_types.size() == 1 && relations.size() <= 1;
  }
  // "SRC__NAME__DST".
  std::string RelationName(RelationIndex relation) const;
  // NOT_FOUND: there is none of that name; the message lists the names.
  absl::StatusOr<TypeIndex> FindType(std::string_view name) const;
  absl::StatusOr<RelationIndex> FindRelation(std::string_view name) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

// Splits "SRC__NAME__DST" at its first and last "__". INVALID_ARGUMENT: `name`
// does not have this form.
struct RelationNameParts {
  std::string src, name, dst;
};
absl::StatusOr<RelationNameParts> ParseRelationName(std::string_view name);

// The direction of neighbour lists; kIn lists hold a node's in-edges.
enum class Direction : uint8_t { kIn = 0, kOut = 1 };
std::string_view DirectionName(Direction direction);  // "in", "out"

// Whether the lists of this direction have a time column. With edge times they
// always do; with neighbour times, only if the neighbours' type has times.
bool ListsHaveTime(const Schema& schema, RelationIndex relation,
                   Direction direction);

// INVALID_ARGUMENT: `name` cannot name a node type, a relation or a split.
// Names become parts of paths.
absl::Status ValidateName(std::string_view name);
// INVALID_ARGUMENT: "SRC__NAME__DST" would be parsed into other names.
absl::Status ValidateRelationName(const RelationNameParts& parts);
// INVALID_ARGUMENT: an invalid, ambiguous or repeated name, a node type that
// does not exist, or an impossible shape or count.
absl::Status ValidateSchema(const Schema& schema);

}  // namespace millrace
