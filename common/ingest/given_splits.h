// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/edge_split_writer.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// The splits that come with a graph, read and checked.
struct GivenSplits {
  // In the order of RawGraph::splits; ascending original ids.
  std::vector<std::vector<int64_t>> nodes;
  // In the order of RawGraph::edge_splits. If a split's edges are given by
  // their ids, `edge_id` has them as given, and there are no other columns.
  std::vector<EdgeSplitColumns> edges;
};

// Reads only the splits, so that errors in them are found before the graph is
// read. INVALID_ARGUMENT: an id that does not exist, a node that occurs twice
// in a split, a split "train" without seeds (for others this is only a
// warning), or columns of different lengths. Also the errors of RowReader.
absl::StatusOr<GivenSplits> ReadGivenSplits(const RawGraph& graph);

}  // namespace millrace
