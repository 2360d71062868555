// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/progress.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/ingest/renumbering.h"

namespace millrace {

// What one partition got.
struct PartSummary {
  int64_t nodes = 0;      // of all types
  int64_t edges = 0;      // in its lists (in-lists where both are stored)
  int64_t cut_edges = 0;  // those whose neighbour another partition owns
};

struct ListOptions {
  bool in = true;  // which lists are written; at least one
  bool out = false;
  bool neighbor_original_ids = true;  // beside the neighbours' ids
  uint64_t memory_bytes = 0;          // for a window of lists; the rest streams
};

// Writes all files of one relation: lists in the order of the new ids, each
// in the order of the dataset, neighbours renumbered, and the edge features.
// Adds edges and cut edges to `parts`, entries written to `progress`.
// Memory: a window, and 16 bytes a destination when out-lists need slots.
// DATA_LOSS: damaged lists. CANCELLED.
absl::Status WriteRelation(const Store& dataset, RelationIndex relation,
                           const std::vector<Renumbering>& numbers,
                           const ListOptions& options, StoreWriter& writer,
                           std::vector<PartSummary>& parts, Progress& progress);

}  // namespace millrace
