// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/ogb_binary.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/graph/schema.h"
#include "common/table/npz_rows.h"

namespace millrace {
namespace {

using SourcePtr = std::shared_ptr<const RowSource>;

// The array of the first of `keys` that exists; null if none does.
absl::StatusOr<SourcePtr> OptionalRows(
    const NpzFile& file, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!file.Has(key)) continue;
    MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows, file.Rows(key));
    return rows;
  }
  return SourcePtr();
}

absl::StatusOr<int64_t> OnlyCount(const NpzFile& file, const char* key) {
  const absl::StatusOr<std::vector<int64_t>> counts = file.Integers(key, 1);
  if (!counts.ok()) {
    return absl::Status(counts.status().code(),
                        StrCat(counts.status().message(),
                               "\n`import ogb` takes one graph, with one "
                               "count"));
  }
  if (counts->front() >= 0) return counts->front();
  return absl::InvalidArgumentError(StrCat(file.name(), ": ", key, " is ",
                                           counts->front(),
                                           ", which is not a count"));
}

}  // namespace

bool IsOgbBinary(const std::filesystem::path& raw) {
  return FileExists(raw / "data.npz");
}

absl::Status AddOgbBinary(const std::filesystem::path& raw, bool own_features,
                          RawGraph& graph) {
  MILLRACE_ASSIGN_OR_RETURN(const NpzFile data,
                            NpzFile::Open(raw / "data.npz"));
  RawNodes nodes{.name = std::string(kHomogeneousType)};
  MILLRACE_ASSIGN_OR_RETURN(nodes.count, OnlyCount(data, "num_nodes_list"));
  nodes.count_reason = StrCat(data.name(), " declares this number");
  if (!own_features) {
    MILLRACE_ASSIGN_OR_RETURN(nodes.feature, OptionalRows(data, {"node_feat"}));
  }
  MILLRACE_ASSIGN_OR_RETURN(nodes.time,
                            OptionalRows(data, {"node_time", "node_year"}));
  if (FileExists(raw / "node-label.npz")) {
    MILLRACE_ASSIGN_OR_RETURN(const NpzFile labels,
                              NpzFile::Open(raw / "node-label.npz"));
    MILLRACE_ASSIGN_OR_RETURN(nodes.label, labels.Rows("node_label"));
  }
  graph.nodes.push_back(std::move(nodes));
  RawEdges edges{.name = "to"};
  MILLRACE_ASSIGN_OR_RETURN(edges.endpoints, data.Edges("edge_index"));
  MILLRACE_ASSIGN_OR_RETURN(edges.declared_count,
                            OnlyCount(data, "num_edges_list"));
  edges.declared_by = StrCat(data.name(), ": num_edges_list");
  MILLRACE_ASSIGN_OR_RETURN(edges.weight, OptionalRows(data, {"edge_weight"}));
  MILLRACE_ASSIGN_OR_RETURN(edges.time,
                            OptionalRows(data, {"edge_time", "edge_year"}));
  MILLRACE_ASSIGN_OR_RETURN(edges.type,
                            OptionalRows(data, {"edge_reltype", "edge_type"}));
  MILLRACE_ASSIGN_OR_RETURN(edges.feature, OptionalRows(data, {"edge_feat"}));
  graph.edges.push_back(std::move(edges));
  return absl::OkStatus();
}

}  // namespace millrace
