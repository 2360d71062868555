// SPDX-License-Identifier: Apache-2.0
// Checks of a graph that need only names, shapes and headers, so that they can
// be made before the long work of an import.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// INVALID_ARGUMENT: a node type, relation or split whose name is not allowed in
// a store or is given twice; with `options.add_reverse`, also one that clashes
// with the name of a reverse relation.
absl::Status CheckGraphNames(const RawGraph& graph,
                             const ImportOptions& options);

// INVALID_ARGUMENT: a column of known length does not have one row per node or
// edge.
absl::Status CheckRowCounts(const RawGraph& graph);

// RESOURCE_EXHAUSTED: the memory that an import needs for nodes and for
// buffered edges is not available. Node types with columns of unknown length
// are not counted, since their node counts have not been confirmed yet.
absl::Status CheckImportMemory(const RawGraph& graph,
                               const ImportOptions& options);

// "node type item has 5 nodes, because x.npy has 5 rows; ids are 0 to 4".
std::string NodeRangeText(const RawNodes& nodes);

}  // namespace millrace
