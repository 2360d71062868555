// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Opens the Reddit data set (Hamilton et al. 2017) as DGL and PyG ship it:
// a folder with two files. reddit_data.npz has feature [n, d], label [n] and
// node_types [n] (1 train, 2 valid, 3 test, 0 none; ignored if `options` makes
// splits).
// reddit_graph.npz is an adjacency matrix written by scipy.sparse.save_npz, as
// COO, CSR or CSC. An element (row, column) is an edge from row to column, in
// the file's order; values are not read.
// NOT_FOUND: no such file or array. INVALID_ARGUMENT: counts that disagree, or
// another sparse format.
absl::StatusOr<RawGraph> OpenReddit(const std::filesystem::path& directory,
                                    const ImportOptions& options);

}  // namespace millrace
