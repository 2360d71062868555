// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"

namespace millrace {

struct NewSplit {
  std::string name;
  std::string type;           // empty: the only node type
  std::filesystem::path ids;  // .npy, original ids or a bool mask
};

// Adds a split to a dataset or store (all partitions must be there), which
// keeps its fingerprints: the files of the split are written first, then
// store.json is replaced by one rename. One writer at a time; servers of the
// store may run, and look for the split when they are asked for it.
// ALREADY_EXISTS: the type has a split of this name. INVALID_ARGUMENT: an id
// out of range or twice, no such type, a name that is no folder name.
absl::StatusOr<SplitInfo> AddSplit(const std::filesystem::path& store,
                                   const NewSplit& split);

// A split of pairs of nodes.
struct NewEdgeSplit {
  std::string name;
  std::string relation;  // empty: the only one
  // One of the three: the ids of edges [n], all edges, or any pairs [n, 2] in
  // original ids.
  std::filesystem::path edge_ids;
  bool all = false;
  std::filesystem::path pairs;
  // With pairs; empty: none. Integers [n], numbers [n], integers [n, k].
  std::filesystem::path times, edge_types, labels, negatives;
};

// As AddSplit.
absl::StatusOr<EdgeSplitInfo> AddEdgeSplit(const std::filesystem::path& store,
                                           const NewEdgeSplit& split);

}  // namespace millrace
