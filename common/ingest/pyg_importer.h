// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/ingest/partition_folder.h"

namespace millrace {

// The folder that torch_geometric.distributed.Partitioner (2.5 and later)
// writes: META.json, node_map.pt, edge_map.pt (folders with a file for each
// type where heterogeneous), part_0/ and so on with graph.pt, node_feats.pt,
// edge_feats.pt; labels and splits beside it (see AddCompanions). The graph
// is the whole one, in original ids: edge_id is the position in the edge list
// of before. Features that the Partitioner itself made up (NaN, or -1
// among integers, for types without any) are left out.
// NOT_FOUND: a file that must be there. INVALID_ARGUMENT, DATA_LOSS: errors
// of OpenTorchFile and RestoreRows, a file that lacks what it should hold.
absl::StatusOr<RawGraph> DescribePygPartitions(
    const PartitionFolderInput& input, const ImportOptions& options);

}  // namespace millrace
