// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/npy_graph.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/graph_checks.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

constexpr int64_t kBlockEdges = 16 << 10;
// Far more nodes than any memory can hold, yet low enough to add without
// overflow.
constexpr int64_t kLargestId = int64_t{1} << 62;

absl::Status IdTooLarge(const RawEdges& edges, int64_t row, int64_t id) {
  return absl::InvalidArgumentError(
      StrCat(edges.endpoints->Where(row), ": node ", id,
             " is above the largest id, 2^62\nids count from 0 without large "
             "gaps: renumber the nodes"));
}

class NpyGraph {
 public:
  explicit NpyGraph(const NpyInput& input) : input_(input) {}

  absl::StatusOr<RawGraph> Describe() {
    MILLRACE_RETURN_IF_ERROR(AddRelations());
    MILLRACE_RETURN_IF_ERROR(AddNodeColumns());
    MILLRACE_RETURN_IF_ERROR(AddEdgeColumns());
    CountRows();
    MILLRACE_RETURN_IF_ERROR(CheckGraphNames(graph_, {}));
    MILLRACE_RETURN_IF_ERROR(AddAllSplits());
    if (AllCounted()) return std::move(graph_);
    MILLRACE_RETURN_IF_ERROR(CountByLargestId());
    // Opens the splits again, now that the lengths of masks can be checked.
    graph_.splits.clear();
    graph_.edge_splits.clear();
    MILLRACE_RETURN_IF_ERROR(AddAllSplits());
    return std::move(graph_);
  }

 private:
  using NodeColumn = std::shared_ptr<const RowSource> RawNodes::*;
  using EdgeColumn = std::shared_ptr<const RowSource> RawEdges::*;

  absl::Status AddRelations();
  TypeIndex AddType(const std::string& name);
  absl::Status AddNodeColumns();
  absl::Status AddNodeColumn(std::string_view field, const NamedFiles& files,
                             NodeColumn column);
  absl::Status AddEdgeColumns();
  absl::Status AddEdgeColumn(std::string_view field, const NamedFiles& files,
                             EdgeColumn column);
  void CountRows();
  bool AllCounted() const {
    return std::all_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [](const RawNodes& nodes) { return nodes.count >= 0; });
  }
  absl::Status CountByLargestId();
  absl::StatusOr<int64_t> LargestId(TypeIndex type) const;
  absl::Status AddAllSplits();
  absl::Status AddSplits(std::string_view name, const NamedFiles& files);
  absl::Status AddEdgeSplit(std::string_view name, const std::string& relation,
                            const std::filesystem::path& path);
  absl::StatusOr<TypeIndex> FindType(std::string_view field,
                                     const std::string& name) const;
  absl::StatusOr<RelationIndex> FindRelation(std::string_view field,
                                             const std::string& name) const;

  const NpyInput& input_;
  RawGraph graph_;
};

TypeIndex NpyGraph::AddType(const std::string& name) {
  const auto found =
      std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                   [&](const RawNodes& nodes) { return nodes.name == name; });
  if (found != graph_.nodes.end()) {
    return static_cast<TypeIndex>(found - graph_.nodes.begin());
  }
  graph_.nodes.push_back({.name = name, .count = -1});
  return static_cast<TypeIndex>(graph_.nodes.size()) - 1;
}

absl::Status NpyGraph::AddRelations() {
  if (input_.edges.empty()) {
    return InvalidField({.problem = FieldError::Problem::kMissing,
                         .field = "edges",
                         .limit = "a graph needs at least one relation"});
  }
  for (const auto& [name, path] : input_.edges) {
    RelationNameParts parts{std::string(kHomogeneousType), "to",
                            std::string(kHomogeneousType)};
    if (!name.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(parts, ParseRelationName(name));
    } else if (input_.edges.size() > 1) {
      return InvalidField({.field = "edges",
                           .value = path.string(),
                           .limit = "with several relations each needs a name: "
                                    "SRC__NAME__DST=FILE"});
    }
    RawEdges edges;
    edges.src = AddType(parts.src);
    edges.name = parts.name;
    edges.dst = AddType(parts.dst);
    MILLRACE_ASSIGN_OR_RETURN(edges.endpoints, OpenNpyEdges(path));
    graph_.edges.push_back(std::move(edges));
  }
  return absl::OkStatus();
}

absl::StatusOr<TypeIndex> NpyGraph::FindType(std::string_view field,
                                             const std::string& name) const {
  if (name.empty() && graph_.nodes.size() == 1) return 0;
  std::vector<std::string> names;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].name == name) return static_cast<TypeIndex>(i);
    names.push_back(graph_.nodes[i].name);
  }
  return InvalidField(
      {.field = std::string(field),
       .limit = StrCat(
           name.empty() ? "a node type is needed"
                        : StrCat("no node type \"", name, "\""),
           "; give TYPE=... with one of: ", absl::StrJoin(names, ", "))});
}

absl::StatusOr<RelationIndex> NpyGraph::FindRelation(
    std::string_view field, const std::string& name) const {
  if (name.empty() && graph_.edges.size() == 1) return 0;
  std::vector<std::string> names;
  for (size_t i = 0; i < graph_.edges.size(); ++i) {
    names.push_back(graph_.RelationName(graph_.edges[i]));
    if (names.back() == name) return static_cast<RelationIndex>(i);
  }
  return InvalidField(
      {.field = std::string(field),
       .limit = StrCat(name.empty() ? "a relation is needed"
                                    : StrCat("no relation \"", name, "\""),
                       "; give SRC__NAME__DST=FILE with one of: ",
                       absl::StrJoin(names, ", "))});
}

absl::Status NpyGraph::AddNodeColumn(std::string_view field,
                                     const NamedFiles& files,
                                     NodeColumn column) {
  for (const auto& [name, path] : files) {
    MILLRACE_ASSIGN_OR_RETURN(const TypeIndex type, FindType(field, name));
    MILLRACE_ASSIGN_OR_RETURN(graph_.nodes[type].*column, OpenNpyRows(path));
  }
  return absl::OkStatus();
}

// Types that only `node_counts` names come after those of the relations.
absl::Status NpyGraph::AddNodeColumns() {
  for (const auto& [name, count] : input_.node_counts) {
    TypeIndex type = 0;
    if (name.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(type, FindType("node_counts", name));
    } else {
      type = AddType(name);
    }
    if (count < 0) {
      return InvalidField({.field = "node_counts",
                           .value = StrCat(count),
                           .limit = "a count must not be negative"});
    }
    graph_.nodes[type].count = count;
    graph_.nodes[type].count_is_chosen = true;
    graph_.nodes[type].count_reason = "that number was given";
  }
  MILLRACE_RETURN_IF_ERROR(
      AddNodeColumn("features", input_.features, &RawNodes::feature));
  MILLRACE_RETURN_IF_ERROR(
      AddNodeColumn("labels", input_.labels, &RawNodes::label));
  return AddNodeColumn("node_times", input_.node_times, &RawNodes::time);
}

absl::Status NpyGraph::AddEdgeColumn(std::string_view field,
                                     const NamedFiles& files,
                                     EdgeColumn column) {
  for (const auto& [name, path] : files) {
    MILLRACE_ASSIGN_OR_RETURN(const RelationIndex relation,
                              FindRelation(field, name));
    RawEdges& edges = graph_.edges[relation];
    MILLRACE_ASSIGN_OR_RETURN(edges.*column, OpenNpyRows(path));
    const RowSource& rows = *(edges.*column);
    if (rows.rows() != edges.endpoints->rows()) {
      return absl::InvalidArgumentError(
          StrCat(rows.name(), ": ", rows.rows(), " rows, but ",
                 edges.endpoints->name(), " has ", edges.endpoints->rows(),
                 " edges; each edge needs a row"));
    }
  }
  return absl::OkStatus();
}

absl::Status NpyGraph::AddEdgeColumns() {
  MILLRACE_RETURN_IF_ERROR(
      AddEdgeColumn("edge_weights", input_.edge_weights, &RawEdges::weight));
  MILLRACE_RETURN_IF_ERROR(
      AddEdgeColumn("edge_times", input_.edge_times, &RawEdges::time));
  MILLRACE_RETURN_IF_ERROR(
      AddEdgeColumn("edge_types", input_.edge_types, &RawEdges::type));
  return AddEdgeColumn("edge_features", input_.edge_features,
                       &RawEdges::feature);
}

void NpyGraph::CountRows() {
  for (RawNodes& nodes : graph_.nodes) {
    for (const auto& column : {nodes.feature, nodes.label, nodes.time}) {
      if (column == nullptr || nodes.count >= 0) continue;
      nodes.count = column->rows();
      nodes.count_reason = StrCat(column->name(), " has ", nodes.count,
                                  nodes.count == 1 ? " row" : " rows");
    }
  }
}

absl::Status NpyGraph::CountByLargestId() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (graph_.nodes[i].count >= 0) continue;
    MILLRACE_ASSIGN_OR_RETURN(const int64_t largest,
                              LargestId(static_cast<TypeIndex>(i)));
    graph_.nodes[i].count = largest + 1;
  }
  return absl::OkStatus();
}

// The largest id of a node of this type in any edge; -1 if there is none.
// Negative ids are ignored here, since the import reports them with their
// position.
absl::StatusOr<int64_t> NpyGraph::LargestId(TypeIndex type) const {
  int64_t largest = -1;
  std::vector<int64_t> block(2 * kBlockEdges);
  for (const RawEdges& edges : graph_.edges) {
    if (edges.src != type && edges.dst != type) continue;
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader,
                              edges.endpoints->Open());
    for (int64_t first = 0;; first += kBlockEdges) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      MILLRACE_ASSIGN_OR_RETURN(
          const int64_t rows, reader->ReadIntegers(kBlockEdges, block.data()));
      if (rows == 0) break;
      for (int64_t row = 0; row < rows; ++row) {
        int64_t id = -1;
        if (edges.src == type) id = block[2 * row];
        if (edges.dst == type) id = std::max(id, block[2 * row + 1]);
        if (id > kLargestId) return IdTooLarge(edges, first + row, id);
        largest = std::max(largest, id);
      }
    }
  }
  return largest;
}

absl::Status NpyGraph::AddAllSplits() {
  MILLRACE_RETURN_IF_ERROR(AddSplits("train", input_.train));
  MILLRACE_RETURN_IF_ERROR(AddSplits("valid", input_.valid));
  return AddSplits("test", input_.test);
}

absl::Status NpyGraph::AddSplits(std::string_view name,
                                 const NamedFiles& files) {
  for (const auto& [type_name, path] : files) {
    if (absl::StrContains(type_name, "__")) {
      MILLRACE_RETURN_IF_ERROR(AddEdgeSplit(name, type_name, path));
      continue;
    }
    RawSplit split;
    split.name = name;
    MILLRACE_ASSIGN_OR_RETURN(split.type, FindType(name, type_name));
    MILLRACE_ASSIGN_OR_RETURN(split.ids,
                              OpenNpyIds(path, graph_.nodes[split.type].count));
    graph_.splits.push_back(std::move(split));
  }
  return absl::OkStatus();
}

absl::Status NpyGraph::AddEdgeSplit(std::string_view name,
                                    const std::string& relation,
                                    const std::filesystem::path& path) {
  RawEdgeSplit split;
  split.name = name;
  MILLRACE_ASSIGN_OR_RETURN(const RelationIndex index,
                            FindRelation(name, relation));
  split.edges = static_cast<size_t>(index);
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<const RowSource> seeds,
      OpenNpyEdgeSeeds(path, graph_.edges[split.edges].endpoints->rows()));
  (seeds->width() == 2 ? split.endpoints : split.ids) = std::move(seeds);
  graph_.edge_splits.push_back(std::move(split));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawGraph> OpenNpy(const NpyInput& input) {
  return NpyGraph(input).Describe();
}

}  // namespace millrace
