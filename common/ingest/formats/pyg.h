// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/ingest/formats/partition_folder.h"

namespace millrace {

// Opens a folder written by torch_geometric.distributed.Partitioner (2.5
// and later): META.json, node_map.pt, edge_map.pt (folders with a file for each
// type for heterogeneous graphs), part_0/ and so on with graph.pt,
// node_feats.pt, edge_feats.pt. Labels and splits are beside it (see
// PartitionFolder::AddLabelsAndSplits). The result is the whole graph, in
// original ids; edge_id is the position in the original edge list. Placeholders
// that the Partitioner fills in for types without features (NaN, or -1 for
// integers) are left out.
// NOT_FOUND: a required file is missing. INVALID_ARGUMENT, DATA_LOSS: a file
// does not contain what it should. Also the errors of OpenTorchFile() and
// RestoreRows().
absl::StatusOr<RawGraph> OpenPygPartitions(const PartitionFolderInput& input,
                                           const ImportOptions& options);

}  // namespace millrace
