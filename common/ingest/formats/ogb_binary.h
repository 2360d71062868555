// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Whether `raw` is the raw/ folder of a binary data set of OGB.
bool IsOgbBinary(const std::filesystem::path& raw);

// Adds the node type and the relation of a homogeneous binary folder, such as
// that of ogbn-papers100M. raw/data.npz has edge_index, num_nodes_list,
// num_edges_list and optionally node_feat, node_year or node_time, edge_feat,
// edge_weight, edge_time or edge_year, edge_reltype or edge_type;
// raw/node-label.npz has node_label. If `own_features`, node_feat is left out.
// INVALID_ARGUMENT: a collection of several graphs. Also the errors of NpzFile.
absl::Status AddOgbBinary(const std::filesystem::path& raw, bool own_features,
                          RawGraph& graph);

}  // namespace millrace
