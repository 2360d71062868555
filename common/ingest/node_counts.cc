// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/node_counts.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr int64_t kFewNodes = 1 << 20;
constexpr int64_t kNodesPerEdge = 1000;
// The number of rows of `source`. Stops counting once there are `enough`.
absl::StatusOr<int64_t> CountRows(const RowSource& source, int64_t enough) {
  if (source.rows() >= 0) return source.rows();
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  std::vector<int64_t> values(static_cast<size_t>(kBlockRows * source.width()));
  int64_t rows = 0;
  while (rows < enough) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t more,
                              reader->ReadIntegers(kBlockRows, values.data()));
    if (more == 0) break;
    rows += more;
  }
  return rows;
}

bool HasColumns(const RawNodes& nodes) {
  return nodes.feature != nullptr || nodes.label != nullptr ||
         nodes.time != nullptr || nodes.owner != nullptr;
}

absl::Status CheckNodeCount(const RawGraph& graph, TypeIndex type) {
  const RawNodes& nodes = graph.nodes[type];
  if (nodes.count_is_chosen || HasColumns(nodes) || nodes.count <= kFewNodes) {
    return absl::OkStatus();
  }
  const int64_t needed = nodes.count / kNodesPerEdge;
  int64_t found = 0;
  for (const RawEdges& edges : graph.edges) {
    if (edges.src != type && edges.dst != type) continue;
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              CountRows(*edges.endpoints, needed - found));
    found += rows;
    if (found >= needed) return absl::OkStatus();
  }
  return WithReason(
      absl::InvalidArgumentError(StrCat(
          "node type ", nodes.name, " would have ", nodes.count,
          " nodes (ids 0 to ", nodes.count - 1, "), but only ", found,
          " edges touch one, fewer than one per ", kNodesPerEdge, " nodes")),
      Reason{"ids_with_gaps"});
}

}  // namespace

absl::Status CheckNodeCounts(const RawGraph& graph) {
  for (size_t type = 0; type < graph.nodes.size(); ++type) {
    MILLRACE_RETURN_IF_ERROR(
        CheckNodeCount(graph, static_cast<TypeIndex>(type)));
  }
  return absl::OkStatus();
}

}  // namespace millrace
