// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/ingest/formats/partition_folder.h"

namespace millrace {

// Opens a folder written by GraphLearn-for-PyTorch's partitioners: META,
// node_pb.pt and edge_pb.pt (folders for heterogeneous graphs), part0/ and so
// on with graph/, node_feat/, edge_feat/ (with a folder for each type), or one
// graph/ for all parts (graph_caching). Features are appended pickles
// (feats.pkl) or one tensor (feats.pt). Cached features are copies and are not
// read. Labels and splits are beside the folder (see
// PartitionFolder::AddLabelsAndSplits).
// The result is the whole graph, in original ids; eids are the positions in the
// original edge list. With graph_caching, GLT usually saves no eids. They are
// then derived from edge_pb; without it, edges are numbered in the order of the
// files.
// NOT_FOUND: a required file is missing. INVALID_ARGUMENT, DATA_LOSS: rows were
// appended twice, or the topology was saved as CSR or CSC, for which GLT does
// not keep edge ids. Also the errors of OpenTorchFile() and RestoreRows().
absl::StatusOr<RawGraph> OpenGltPartitions(const PartitionFolderInput& input,
                                           const ImportOptions& options);

}  // namespace millrace
