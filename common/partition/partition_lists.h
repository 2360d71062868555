// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/progress.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/partition/renumbering.h"

namespace millrace {

// What a partition received.
struct PartSummary {
  int64_t nodes = 0;      // of all types
  int64_t edges = 0;      // in its lists (in-lists if both are stored)
  int64_t cut_edges = 0;  // edges whose neighbour another partition owns
};

struct ListOptions {
  bool in = true;  // directions to write; at least one must be true
  bool out = false;
  bool neighbor_original_ids = true;  // written beside the neighbours' ids
  uint64_t memory_bytes = 0;          // for a window of lists
};

// Writes all files of one relation: the edge features, and the lists in the
// order of the new ids, with neighbours renumbered; the order within a list is
// that of the dataset. Adds edges and cut edges to `parts`, and the number of
// entries written to `progress`.
// Needs memory for a window, and up to 16 bytes per destination if there are
// edge features.
// DATA_LOSS: damaged lists. CANCELLED: interrupted.
absl::Status WriteRelation(const Store& dataset, RelationIndex relation,
                           const std::vector<Renumbering>& numbers,
                           const ListOptions& options, StoreWriter& writer,
                           std::vector<PartSummary>& parts, Progress& progress);

}  // namespace millrace
