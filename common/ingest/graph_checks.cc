// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/graph_checks.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/schema.h"

namespace millrace {
namespace {

// An edge with its id, as the importer holds it until its list is written.
constexpr int64_t kEdgeBytes = 16;
// The degree of a node, in the lists of one direction.
constexpr int64_t kDegreeBytes = 8;
constexpr int64_t kTimeBytes = 8;
constexpr int64_t kLabelBytes = 16;  // the node and its class
constexpr int64_t kSeenBytes = 8;    // per node, only with --coalesce

using Names = std::set<std::string>;

// Names are also used as keys in options (TYPE=FILE,...).
absl::Status CheckName(const std::string& name) {
  MILLRACE_RETURN_IF_ERROR(ValidateName(name));
  if (name.find_first_of("=,") == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("'", name,
             "' cannot name a node type or relation: it has '=' or "
             "','"));
}

absl::Status CheckNew(const std::string& what, const std::string& name,
                      Names& seen) {
  if (seen.insert(name).second) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, name, " is given twice"));
}

absl::Status CheckRelationName(const RawGraph& graph, const RawEdges& edges,
                               Names& seen) {
  MILLRACE_RETURN_IF_ERROR(CheckName(edges.name));
  MILLRACE_RETURN_IF_ERROR(ValidateRelationName(
      {graph.nodes[edges.src].name, edges.name, graph.nodes[edges.dst].name}));
  return CheckNew("relation ", graph.RelationName(edges), seen);
}

absl::Status CheckSplitNames(const RawGraph& graph) {
  Names seen;
  for (const RawSplit& split : graph.splits) {
    MILLRACE_RETURN_IF_ERROR(ValidateName(split.name));
    MILLRACE_RETURN_IF_ERROR(CheckNew(
        "split ", StrCat(split.name, " of ", graph.nodes[split.type].name),
        seen));
  }
  for (const RawEdgeSplit& split : graph.edge_splits) {
    MILLRACE_RETURN_IF_ERROR(ValidateName(split.name));
    MILLRACE_RETURN_IF_ERROR(
        CheckNew("split ",
                 StrCat(split.name, " of ",
                        graph.RelationName(graph.edges[split.edges])),
                 seen));
  }
  return absl::OkStatus();
}

std::vector<std::shared_ptr<const RowSource>> ColumnsOf(const RawNodes& nodes) {
  std::vector<std::shared_ptr<const RowSource>> columns;
  for (const auto& column :
       {nodes.feature, nodes.label, nodes.time, nodes.owner}) {
    if (column != nullptr) columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string NodeRangeText(const RawNodes& nodes) {
  const std::string because = nodes.count_reason.empty()
                                  ? ""
                                  : StrCat(", because ", nodes.count_reason);
  if (nodes.count == 0) {
    return StrCat("node type ", nodes.name, " has no nodes", because);
  }
  return StrCat(
      "node type ", nodes.name, " has ", nodes.count, " nodes", because,
      because.empty() ? ", ids are 0 to " : "; ids are 0 to ", nodes.count - 1);
}

absl::Status CheckGraphNames(const RawGraph& graph,
                             const ImportOptions& options) {
  Names seen;
  for (const RawNodes& nodes : graph.nodes) {
    MILLRACE_RETURN_IF_ERROR(CheckName(nodes.name));
    if (absl::StrContains(nodes.name, "__")) {
      return absl::InvalidArgumentError(
          StrCat("node type \"", nodes.name,
                 "\": \"__\" separates the parts of relation names"));
    }
    MILLRACE_RETURN_IF_ERROR(CheckNew("node type ", nodes.name, seen));
  }
  for (const RawEdges& edges : graph.edges) {
    MILLRACE_RETURN_IF_ERROR(CheckRelationName(graph, edges, seen));
  }
  for (const RawEdges& edges : graph.edges) {
    if (!options.add_reverse) break;
    RawEdges reverse{
        .src = edges.dst, .name = StrCat("rev_", edges.name), .dst = edges.src};
    MILLRACE_RETURN_IF_ERROR(CheckRelationName(graph, reverse, seen));
  }
  return CheckSplitNames(graph);
}

absl::Status CheckRowCounts(const RawGraph& graph) {
  for (const RawNodes& nodes : graph.nodes) {
    for (const auto& column : ColumnsOf(nodes)) {
      if (column->rows() < 0 || column->rows() == nodes.count) continue;
      return absl::InvalidArgumentError(StrCat(
          column->name(), ": ", column->rows(), " rows for ", nodes.count,
          " nodes",
          nodes.count_reason.empty() ? ""
                                     : StrCat(" (", nodes.count_reason, ")"),
          "; each node needs a row"));
    }
  }
  for (const RawEdges& edges : graph.edges) {
    const int64_t count = edges.endpoints->rows();
    for (const auto& column :
         {edges.weight, edges.time, edges.type, edges.feature}) {
      if (column == nullptr || column->rows() < 0 || count < 0 ||
          column->rows() == count) {
        continue;
      }
      return absl::InvalidArgumentError(
          StrCat(column->name(), ": ", column->rows(), " rows, but ",
                 edges.endpoints->name(), " has ", count,
                 " edges; each edge needs a row"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckImportMemory(const RawGraph& graph,
                               const ImportOptions& options) {
  std::vector<int64_t> counts;  // 0 if not confirmed
  uint64_t nodes_in_all = 0;
  uint64_t columns_bytes = 0;
  for (const RawNodes& nodes : graph.nodes) {
    const auto columns = ColumnsOf(nodes);
    const bool known =
        std::all_of(columns.begin(), columns.end(),
                    [](const auto& column) { return column->rows() >= 0; });
    const int64_t count = known ? nodes.count : 0;
    counts.push_back(count);
    nodes_in_all = SaturatedSum({nodes_in_all, static_cast<uint64_t>(count)});
    columns_bytes = SaturatedSum(
        {columns_bytes, SaturatedProduct({count, nodes.time ? kTimeBytes : 0}),
         SaturatedProduct({count, nodes.label ? kLabelBytes : 0})});
  }
  // Relations are imported one after the other, so only the largest counts.
  uint64_t relation_bytes = 0;
  for (const RawEdges& edges : graph.edges) {
    const int64_t source_bytes =
        kDegreeBytes + (options.coalesce ? kSeenBytes : 0);
    relation_bytes = std::max(
        relation_bytes,
        SaturatedSum({SaturatedProduct({counts[edges.src], source_bytes}),
                      SaturatedProduct({counts[edges.dst], kDegreeBytes}),
                      std::min(options.memory_bytes,
                               SaturatedProduct(
                                   {edges.endpoints->rows(), kEdgeBytes}))}));
  }
  return WithReason(CheckMemory(StrCat("importing ", nodes_in_all, " nodes"),
                                SaturatedSum({columns_bytes, relation_bytes})),
                    Reason{"import_too_large"});
}

}  // namespace millrace
