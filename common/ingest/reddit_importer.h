// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// The Reddit data set as DGL and PyG ship it: a folder with
// reddit_data.npz: feature [n, d], label [n], node_types [n] (1 train, 2
// valid, 3 test, 0 none; left out where `options` make splits), and
// reddit_graph.npz: the adjacency matrix of scipy.sparse.save_npz, as COO,
// CSR or CSC; an element (row, column) is an edge from row to column, in the
// file's order; their values are not read.
// NOT_FOUND: no such file or array. INVALID_ARGUMENT: counts that disagree,
// another sparse format.
absl::StatusOr<RawGraph> DescribeReddit(const std::filesystem::path& directory,
                                        const ImportOptions& options);

}  // namespace millrace
