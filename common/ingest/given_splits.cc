// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/given_splits.h"

#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/graph_checks.h"
#include "common/ingest/select_edges.h"
#include "common/ingest/split_import.h"

namespace millrace {
namespace {

// An empty split "train" must be a mistake; splits for evaluation may be empty.
absl::Status CheckNotEmpty(size_t seeds, const std::string& split,
                           const std::string& owner, const RowSource& source) {
  if (seeds > 0) return absl::OkStatus();
  if (split == "train") {
    return absl::InvalidArgumentError(
        StrCat(source.name(), ": the split train of ", owner,
               " has no seeds\ngive some, or leave the split out"));
  }
  LogWarning("a split has no seeds",
             {{"file", source.name()}, {"split", split}, {"type", owner}});
  return absl::OkStatus();
}

absl::Status CheckEnds(const RawGraph& graph, const RawEdgeSplit& split,
                       const EdgeSplitColumns& columns) {
  const RawEdges& edges = graph.edges[split.edges];
  const auto src = columns.src.As<int64_t>(), dst = columns.dst.As<int64_t>();
  for (size_t i = 0; i < src.size(); ++i) {
    for (const auto& [type, node] :
         {std::pair(edges.src, src[i]), std::pair(edges.dst, dst[i])}) {
      const RawNodes& nodes = graph.nodes[type];
      if (node >= 0 && node < nodes.count) continue;
      return absl::InvalidArgumentError(
          StrCat(split.endpoints->Where(static_cast<int64_t>(i)), ": node ",
                 node, " is out of range: ", NodeRangeText(nodes)));
    }
  }
  return absl::OkStatus();
}

// The edges themselves are looked up later (SelectEdges), when the number of
// edges is known even if they are in a text file.
absl::StatusOr<EdgeSplitColumns> ReadEdgeIds(const RawGraph& graph,
                                             const RawEdgeSplit& split) {
  const RawEdges& edges = graph.edges[split.edges];
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, ReadIntegers(*split.ids));
  const int64_t count = edges.endpoints->rows();
  for (size_t i = 0; i < ids.size() && count >= 0; ++i) {
    if (ids[i] >= 0 && ids[i] < count) continue;
    return absl::InvalidArgumentError(
        EdgeIdRangeText(split.ids->Where(static_cast<int64_t>(i)), ids[i],
                        graph.RelationName(edges), count));
  }
  EdgeSplitColumns columns;
  columns.name = split.name;
  columns.edge_id = Array::Adopt(std::move(ids));
  return columns;
}

absl::StatusOr<EdgeSplitColumns> ReadOne(const RawGraph& graph,
                                         const RawEdgeSplit& split) {
  const std::string relation = graph.RelationName(graph.edges[split.edges]);
  if (split.ids != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(EdgeSplitColumns columns,
                              ReadEdgeIds(graph, split));
    MILLRACE_RETURN_IF_ERROR(
        CheckNotEmpty(static_cast<size_t>(columns.edge_id.rows()), split.name,
                      relation, *split.ids));
    return columns;
  }
  MILLRACE_ASSIGN_OR_RETURN(EdgeSplitColumns columns, ReadEdgeSplit(split));
  MILLRACE_RETURN_IF_ERROR(CheckEnds(graph, split, columns));
  MILLRACE_RETURN_IF_ERROR(
      CheckNotEmpty(static_cast<size_t>(columns.src.rows()), split.name,
                    relation, *split.endpoints));
  return columns;
}

}  // namespace

absl::StatusOr<GivenSplits> ReadGivenSplits(const RawGraph& graph) {
  GivenSplits splits;
  for (const RawSplit& split : graph.splits) {
    const RawNodes& nodes = graph.nodes[split.type];
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> ids,
                              ReadSplitIds(*split.ids, nodes));
    MILLRACE_RETURN_IF_ERROR(
        CheckNotEmpty(ids.size(), split.name, nodes.name, *split.ids));
    splits.nodes.push_back(std::move(ids));
  }
  for (const RawEdgeSplit& split : graph.edge_splits) {
    MILLRACE_ASSIGN_OR_RETURN(EdgeSplitColumns columns, ReadOne(graph, split));
    splits.edges.push_back(std::move(columns));
  }
  return splits;
}

}  // namespace millrace
