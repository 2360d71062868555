// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/ingest/partition_folder.h"

namespace millrace {

// The folder that GraphLearn-for-PyTorch's partitioners write: META,
// node_pb.pt and edge_pb.pt (folders where heterogeneous), part0/ and so on
// with graph/, node_feat/, edge_feat/ (a folder for each type in these), or
// one graph/ for all parts (graph_caching); features as appended pickles
// (feats.pkl) or as one tensor (feats.pt). Cached features are copies and not
// read. Labels and splits lie beside it (see AddCompanions). The graph is the
// whole one, in original ids: eids is the position in the edge list of
// before. With graph_caching GLT mostly saves no eids: then they are found by
// edge_pb, or, without that, edges are numbered as they stand in the files.
// NOT_FOUND: a file that must be there. INVALID_ARGUMENT, DATA_LOSS: errors
// of OpenTorchFile and RestoreRows, rows appended twice, topology that was
// made CSR or CSC, whose edge ids GLT does not keep.
absl::StatusOr<RawGraph> DescribeGltPartitions(
    const PartitionFolderInput& input, const ImportOptions& options);

}  // namespace millrace
