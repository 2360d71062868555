// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/edge_split.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// The splits that come with a graph, read and checked.
struct GivenSplits {
  // By place in RawGraph::splits: ascending original ids.
  std::vector<std::vector<int64_t>> nodes;
  // By place in RawGraph::edge_splits. Where edges are given by their ids, in
  // their order, only `edge_id` is there.
  std::vector<EdgeSplitColumns> edges;
};

// Reads the splits alone, so that a bad one is found before the graph is read.
// INVALID_ARGUMENT: an id that does not exist, a node twice in a split, a split
// "train" without seeds (others without seeds are warned of), columns of
// another length. Errors of RowReader.
absl::StatusOr<GivenSplits> ReadGivenSplits(const RawGraph& graph);

}  // namespace millrace
