// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"

namespace millrace {

struct NewSplit {
  std::string name;
  std::string type;           // empty means the only node type
  std::filesystem::path ids;  // .npy file of original ids, or a bool mask
};

// Adds a split to a dataset or store that has all of its partitions. The
// store's fingerprints do not change. The files of the split are written first,
// then store.json is replaced by one rename. Only one writer may run at a time.
// Servers of the store may be running; they look for the split when it is first
// requested.
// ALREADY_EXISTS: the type has a split of this name. INVALID_ARGUMENT: an id
// that is out of range or occurs twice, no such type, a name that cannot name a
// folder.
absl::StatusOr<SplitInfo> AddSplit(const std::filesystem::path& store,
                                   const NewSplit& split);

// A new split whose seeds are pairs of nodes.
struct NewEdgeSplit {
  std::string name;
  std::string relation;  // empty means the only relation
  // Exactly one of these three must be set: edge ids [n], all edges, or pairs
  // [n, 2] of original ids, which need not be edges.
  std::filesystem::path edge_ids;
  bool all = false;
  std::filesystem::path pairs;
  // Only with `pairs`; empty means none. Times and edge types are integers [n],
  // labels are numbers [n], and negatives are original ids [n, k].
  std::filesystem::path times, edge_types, labels, negatives;
};

// Like AddSplit(), for a split of edges.
absl::StatusOr<EdgeSplitInfo> AddEdgeSplit(const std::filesystem::path& store,
                                           const NewEdgeSplit& split);

}  // namespace millrace
