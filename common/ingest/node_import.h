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

// What relations and splits need to know about an imported node type.
struct ImportedNodes {
  NodeType type;
  std::vector<int64_t> times;     // empty if the type has none
  std::vector<int64_t> labelled;  // original ids with a label, ascending
  // Their labels, if a label is a single integer; otherwise empty.
  std::vector<int64_t> classes;
};

// Streams the columns of a node type into partition 0 of `store`. Integer
// labels become int64, others float32 (NaN means unlabelled). Features become
// float32 and are normalised.
// INVALID_ARGUMENT: not one row per node, a value that is not finite (except
// NaN labels), or times that are not integers.
absl::StatusOr<ImportedNodes> ImportNodes(const RawNodes& nodes,
                                          Normalization normalization,
                                          StoreWriter& store);

}  // namespace millrace
