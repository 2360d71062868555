// SPDX-License-Identifier: Apache-2.0
#include "common/graph/schema.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

constexpr std::string_view kSeparator = "__";
// Names become directory names; a relation's directory name joins three of
// them.
constexpr size_t kMaxNameBytes = 80;
// Low enough that the sum of two edge ids does not overflow.
constexpr int64_t kMaxEdgeIds = int64_t{1} << 62;

absl::Status SchemaError(const std::string& what) {
  return absl::InvalidArgumentError(what);
}

absl::Status ValidateColumn(const ColumnSpec& column, std::string_view owner,
                            std::string_view what) {
  int64_t values = 1;
  for (const int64_t size : column.row_shape) {
    if (size < 0 || __builtin_mul_overflow(values, size, &values) ||
        values > kMaxRowValues) {
      return SchemaError(absl::StrCat(
          std::string(what), " of '", std::string(owner),
          "' has rows of shape (", absl::StrJoin(column.row_shape, ", "),
          "); a row has at most ", kMaxRowValues, " values"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateFeature(const ColumnSpec& feature,
                             const std::string& owner) {
  if (!feature.present()) return absl::OkStatus();
  if (feature.row_shape.size() != 1) {
    return SchemaError(absl::StrCat("feature of '", owner, "' has rows of ",
                                    feature.row_shape.size(),
                                    " dimensions; they must have 1"));
  }
  return ValidateColumn(feature, owner, "feature");
}

absl::Status ValidateLabel(const ColumnSpec& label, const std::string& owner) {
  if (!label.present()) return absl::OkStatus();
  const bool scalar = label.row_shape.empty();
  if (label.row_shape.size() > 1 || (scalar && label.dtype != DType::kInt64 &&
                                     label.dtype != DType::kFloat32)) {
    return SchemaError(absl::StrCat(
        "label of '", owner, "' is ", std::string(DTypeName(label.dtype)),
        " with rows of ", label.row_shape.size(),
        " dimensions; it must be int64 or float32, or a matrix"));
  }
  return ValidateColumn(label, owner, "label");
}

absl::Status ValidateType(const NodeType& type) {
  MILLRACE_RETURN_IF_ERROR(ValidateName(type.name));
  if (type.count < 0) {
    return SchemaError(
        absl::StrCat("node type '", type.name, "' has ", type.count, " nodes"));
  }
  MILLRACE_RETURN_IF_ERROR(ValidateFeature(type.feature, type.name));
  return ValidateLabel(type.label, type.name);
}

absl::Status ValidateRelation(const Schema& schema, const Relation& relation) {
  const auto types = static_cast<TypeIndex>(schema.node_types.size());
  if (relation.src < 0 || relation.src >= types || relation.dst < 0 ||
      relation.dst >= types) {
    return SchemaError(absl::StrCat("relation '", relation.name,
                                    "' has a node type that does not exist"));
  }
  MILLRACE_RETURN_IF_ERROR(ValidateName(relation.name));
  const NodeType& src = schema.node_types[relation.src];
  const NodeType& dst = schema.node_types[relation.dst];
  MILLRACE_RETURN_IF_ERROR(
      ValidateRelationName({src.name, relation.name, dst.name}));
  const std::string full =
      absl::StrCat(src.name, "__", relation.name, "__", dst.name);
  if (relation.edge_count < 0 || relation.max_edge_id < -1 ||
      relation.max_edge_id < relation.edge_count - 1 ||
      relation.max_edge_id >= kMaxEdgeIds) {
    return SchemaError(
        absl::StrCat("relation '", full, "' has ", relation.edge_count,
                     " edges and the largest edge id ", relation.max_edge_id));
  }
  if (relation.time == ListTime::kNeighbor && !src.has_time && !dst.has_time) {
    return SchemaError(
        absl::StrCat("relation '", full,
                     "' takes its times from neighbours that have none"));
  }
  return ValidateFeature(relation.feature, full);
}

// Returns "the THINGS are 'a', 'b'" for a message, or "there are none". The
// names are escaped because they may come from a file and may not have been
// checked yet.
std::string Enumerate(std::string_view things,
                      const std::vector<std::string>& list) {
  const auto escape = [](std::string* out, const std::string& name) {
    absl::StrAppend(out, absl::CHexEscape(name));
  };
  if (list.empty()) return "there are none";
  return absl::StrCat("the ", std::string(things), " are '",
                      absl::StrJoin(list, "', '", escape), "'");
}

}  // namespace

size_t ColumnSpec::row_bytes() const {
  size_t bytes = ItemBytes(dtype);
  for (const int64_t size : row_shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

std::vector<int64_t> ColumnSpec::ShapeOf(int64_t rows) const {
  std::vector<int64_t> shape = {rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

DType NodeType::id_dtype() const {
  return count <= int64_t{std::numeric_limits<uint32_t>::max()}
             ? DType::kUint32
             : DType::kUint64;
}

std::string Schema::RelationName(RelationIndex relation) const {
  const Relation& of = relations[relation];
  return absl::StrCat(node_types[of.src].name, "__", of.name, "__",
                      node_types[of.dst].name);
}

absl::StatusOr<TypeIndex> Schema::FindType(std::string_view name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < node_types.size(); ++i) {
    if (node_types[i].name == name) return static_cast<TypeIndex>(i);
    names.push_back(node_types[i].name);
  }
  return absl::NotFoundError(
      absl::StrCat("no node type '", absl::CHexEscape(std::string(name)), "'; ",
                   Enumerate("node types", names)));
}

absl::StatusOr<RelationIndex> Schema::FindRelation(
    std::string_view name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < relations.size(); ++i) {
    names.push_back(RelationName(static_cast<RelationIndex>(i)));
    if (names.back() == name) return static_cast<RelationIndex>(i);
  }
  return absl::NotFoundError(
      absl::StrCat("no relation '", absl::CHexEscape(std::string(name)), "'; ",
                   Enumerate("relations", names)));
}

absl::Status ValidateName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '/' && c != '\\';
  });
  if (!name.empty() && name.size() <= kMaxNameBytes && plain &&
      name[0] != '.') {
    return absl::OkStatus();
  }
  return SchemaError(absl::StrCat(
      "'", absl::CHexEscape(std::string(name.substr(0, kMaxNameBytes))),
      "' cannot name a node type, relation or split: 1 to ", kMaxNameBytes,
      " ASCII characters, without spaces or slashes, not starting with '.'"));
}

absl::Status ValidateRelationName(const RelationNameParts& parts) {
  const std::string full =
      absl::StrCat(parts.src, "__", parts.name, "__", parts.dst);
  MILLRACE_ASSIGN_OR_RETURN(const RelationNameParts read,
                            ParseRelationName(full));
  if (read.src == parts.src && read.name == parts.name) return absl::OkStatus();
  return SchemaError(absl::StrCat("relation '", full, "' would be read as '",
                                  read.src, "', '", read.name, "', '", read.dst,
                                  "'; names must not begin or end with '_'"));
}

absl::Status ValidateSchema(const Schema& schema) {
  if (schema.node_types.empty()) return SchemaError("there is no node type");
  std::vector<std::string> names;
  for (const NodeType& type : schema.node_types) {
    MILLRACE_RETURN_IF_ERROR(ValidateType(type));
    names.push_back(type.name);
  }
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(ValidateRelation(schema, schema.relations[i]));
    names.push_back(schema.RelationName(static_cast<RelationIndex>(i)));
  }
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) {
    return SchemaError(absl::StrCat("'", *twin, "' occurs twice"));
  }
  return absl::OkStatus();
}

bool ListsHaveTime(const Schema& schema, RelationIndex relation,
                   Direction direction) {
  const Relation& of = schema.relations[relation];
  if (of.time != ListTime::kNeighbor) return of.time == ListTime::kEdge;
  const TypeIndex neighbor = direction == Direction::kIn ? of.src : of.dst;
  return schema.node_types[neighbor].has_time;
}

absl::StatusOr<RelationNameParts> ParseRelationName(std::string_view name) {
  const size_t first = name.find(kSeparator);
  const size_t last = name.rfind(kSeparator);
  if (first == std::string_view::npos || first == 0 ||
      last <= first + kSeparator.size() ||
      last + kSeparator.size() >= name.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(name), "' is not a relation; write SRC__NAME__DST"));
  }
  const size_t middle = first + kSeparator.size();
  return RelationNameParts{
      .src = std::string(name.substr(0, first)),
      .name = std::string(name.substr(middle, last - middle)),
      .dst = std::string(name.substr(last + kSeparator.size()))};
}

std::string_view DirectionName(Direction direction) {
  return direction == Direction::kIn ? "in" : "out";
}

}  // namespace millrace
