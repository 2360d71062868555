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

// What ImportRelation needs; everything must outlive the call.
struct RelationImport {
  const RawGraph& graph;
  const RawEdges& edges;  // the user's relation
  bool reverse = false;   // write its reverse (--add-reverse) instead
  const ImportOptions& options;
  // Times per node type, empty where a type has none.
  const std::vector<std::vector<int64_t>>& node_times;
  // By place in the user's list: edges that are left out, with their
  // reverses. Empty: none.
  const std::vector<bool>& held_out;
};

// Streams a relation into the in-lists, out-lists and edge features of
// partition 0 of `store`; returns its schema entry. Errors of EdgeReader;
// INVALID_ARGUMENT: an edge that is earlier than the node at one of its ends.
absl::StatusOr<Relation> ImportRelation(const RelationImport& import,
                                        StoreWriter& store);

}  // namespace millrace
