// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Whether `raw` is the raw/ folder of one of OGB's binary data sets.
bool IsOgbBinary(const std::filesystem::path& raw);

// Adds node type and relation of a homogeneous binary folder, such as
// ogbn-papers100M: raw/data.npz with edge_index, num_nodes_list,
// num_edges_list and optionally node_feat, node_year or node_time,
// edge_feat, edge_weight, edge_time or edge_year, edge_reltype or edge_type;
// raw/node-label.npz with node_label. With `own_features` node_feat is left
// out.
// INVALID_ARGUMENT: a collection of several graphs. Errors of NpzFile.
absl::Status AddOgbBinary(const std::filesystem::path& raw, bool own_features,
                          RawGraph& graph);

}  // namespace millrace
