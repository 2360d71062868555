// SPDX-License-Identifier: Apache-2.0
// What a graph consists of: node types and relations with their columns.
// A homogeneous graph is the case of one of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"

namespace millrace {

// Numbers of node types and relations in the schema's order; they enter the
// random numbers (docs/determinism.md), so the order never changes.
using TypeIndex = int;
using RelationIndex = int;

inline constexpr std::string_view kHomogeneousType = "node";

// Numbers in a row of features or labels at most: a file without rows may
// claim any number, and rows are held in memory.
inline constexpr int64_t kMaxRowValues = 1 << 20;

// One matrix column set: dtype and shape of one row ([d], or [] for scalars).
// dtype kNone: the column is absent.
struct ColumnSpec {
  DType dtype = DType::kNone;
  std::vector<int64_t> row_shape;

  bool present() const { return dtype != DType::kNone; }
  size_t row_bytes() const;
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

struct NodeType {
  std::string name;
  int64_t count = 0;
  ColumnSpec feature = {};
  ColumnSpec label = {};
  bool has_time = false;
  bool has_hotness = false;

  // uint32 below 2^32 nodes, else uint64.
  DType id_dtype() const;
  friend bool operator==(const NodeType&, const NodeType&) = default;
};

// Whose time the lists of a relation carry and are sorted by.
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
  // NOT_FOUND lists the names there are.
  absl::StatusOr<TypeIndex> FindType(std::string_view name) const;
  absl::StatusOr<RelationIndex> FindRelation(std::string_view name) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

// Splits "SRC__NAME__DST" at its first and last "__".
struct RelationNameParts {
  std::string src, name, dst;
};
absl::StatusOr<RelationNameParts> ParseRelationName(std::string_view name);

// The direction of neighbour lists: kIn lists hold a node's in-edges.
enum class Direction : uint8_t { kIn = 0, kOut = 1 };
std::string_view DirectionName(Direction direction);  // "in", "out"

// Whether the lists of this direction have a time column: with edge times
// always, with times of neighbours when the neighbours' type has times.
bool ListsHaveTime(const Schema& schema, RelationIndex relation,
                   Direction direction);

// INVALID_ARGUMENT: not fit to name a node type, a relation or a split (names
// are parts of paths).
absl::Status ValidateName(std::string_view name);
// INVALID_ARGUMENT: SRC__NAME__DST would be read as other names.
absl::Status ValidateRelationName(const RelationNameParts& parts);
// INVALID_ARGUMENT: names that are unfit, ambiguous or repeated, a node type
// that does not exist, a shape or count that cannot be.
absl::Status ValidateSchema(const Schema& schema);

}  // namespace millrace
