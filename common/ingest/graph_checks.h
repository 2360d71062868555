// SPDX-License-Identifier: Apache-2.0
// What can be found out about a graph before the long work of an import: from
// names, shapes and headers alone.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// INVALID_ARGUMENT: a node type, relation or split whose name a store cannot
// have, or that is given twice; with `options.add_reverse` also a name that
// the reverse of a relation gets.
absl::Status CheckGraphNames(const RawGraph& graph,
                             const ImportOptions& options);

// INVALID_ARGUMENT: a column, as far as its length is known, that has not one
// row a node or edge.
absl::Status CheckRowCounts(const RawGraph& graph);

// RESOURCE_EXHAUSTED: the bytes that an import holds for each node, and for
// the edges that wait, are not available. Node types with columns of unknown
// length are left out: their counts are not yet known to be true.
absl::Status CheckImportMemory(const RawGraph& graph,
                               const ImportOptions& options);

// "node type item has 5 nodes, because x.npy has 5 rows; ids are 0 to 4".
std::string NodeRangeText(const RawNodes& nodes);

}  // namespace millrace
