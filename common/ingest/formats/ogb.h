// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// A folder in the raw layout of the Open Graph Benchmark (Hu et al. 2020): CSV
// files, each gzip or plain, in `raw/` and `split/NAME/`.
struct OgbInput {
  std::filesystem::path directory;
  // The NAME; empty means the only one. Then having several is an error, but
  // having none is not.
  std::string split;
  // .npy files of features by node type, to use instead of the folder's; the
  // type of a homogeneous graph may be "".
  std::map<std::string, std::filesystem::path> features;
};

// Opens a homogeneous (raw/edge.csv) or heterogeneous
// (raw/triplet-type-list.csv) graph. If `options` has split fractions or folds,
// the folder's splits are ignored.
//
// Homogeneous raw/: edge, num-node-list, num-edge-list, node-feat, node-label,
// node_year or node_time, edge-feat or edge_feat, edge_weight or edge-weight,
// edge_year or edge_time, edge_reltype or edge_type.
// Homogeneous and binary (raw/data.npz): see ogb_binary.h. The splits are still
// CSV files.
// Heterogeneous raw/: triplet-type-list, num-node-dict, nodetype-has-feat,
// nodetype-has-label, node-feat/TYPE/node-feat, node-label/TYPE/node-label,
// node_year/TYPE/node_year, relations/S___R___D/ with edge, num-edge-list and
// the edge columns.
//
// NOT_FOUND: no such folder or split, or a required file is missing.
// INVALID_ARGUMENT: a collection of several graphs, names that disagree, or
// several splits of which none was chosen.
absl::StatusOr<RawGraph> OpenOgb(const OgbInput& input,
                                 const ImportOptions& options);

}  // namespace millrace
