// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Turns a graph into the dataset `target`: a store of one partition whose ids
// are the original ids, with in-lists and out-lists (docs/format.md). It
// appears whole or not at all. The memory it takes grows with the number of
// nodes and options.memory_bytes, not with the number of edges (except with
// options.edge_split_fractions). Returns the manifest without uuid, fingerprint
// and files.
// ALREADY_EXISTS: `target` exists. CANCELLED: interrupted. INVALID_ARGUMENT,
// NOT_FOUND, DATA_LOSS: bad input; the message names the file and the line or
// row. RESOURCE_EXHAUSTED: too little memory.
absl::StatusOr<Manifest> ImportGraph(const RawGraph& graph,
                                     const ImportOptions& options,
                                     const std::filesystem::path& target);

}  // namespace millrace
