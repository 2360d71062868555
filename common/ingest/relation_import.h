// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/graph/store_writer.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// The arguments of ImportRelation(); everything must outlive the call.
struct RelationImport {
  const RawGraph& graph;
  const RawEdges& edges;  // the user's relation
  bool reverse = false;   // write its reverse instead (--add-reverse)
  const ImportOptions& options;
  // Times by node type; empty for a type without times.
  const std::vector<std::vector<int64_t>>& node_times;
  // By position in the user's list, whether the edge is left out, together with
  // its reverse. Empty if none is.
  const std::vector<bool>& held_out;
};

// Streams a relation into the in-lists, out-lists and edge features of
// partition 0 of `store`, and returns its schema entry. INVALID_ARGUMENT: an
// edge is earlier than the node at one of its ends. Also the errors of
// EdgeReader.
absl::StatusOr<Relation> ImportRelation(const RelationImport& import,
                                        StoreWriter& store);

}  // namespace millrace
