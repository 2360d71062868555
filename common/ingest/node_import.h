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

// What the import of a node type leaves for relations and splits.
struct ImportedNodes {
  NodeType type;
  std::vector<int64_t> times;     // empty: the type has none
  std::vector<int64_t> labelled;  // original ids with a label, ascending
  // Their labels, where a label is one integer; else empty.
  std::vector<int64_t> classes;
};

// Streams the columns of a node type into partition 0 of `store`. Integer
// labels become int64, others float32 (NaN: unlabelled); features become
// float32, normalised as asked for.
// INVALID_ARGUMENT: not one row a node, a value that is not finite (labels
// may be NaN), times that are not integers.
absl::StatusOr<ImportedNodes> ImportNodes(const RawNodes& nodes,
                                          Normalization normalization,
                                          StoreWriter& store);

}  // namespace millrace
