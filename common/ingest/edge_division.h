// SPDX-License-Identifier: Apache-2.0
// The splits of edges that an import makes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

struct EdgeDivision {
  size_t edges = 0;  // the relation's place in RawGraph::edges
  // The seeds of train, valid and test: places in the user's list, ascending.
  std::array<std::vector<int64_t>, 3> ids;
  // By place: edges that the graph goes without. Empty: none.
  std::vector<bool> held_out;
};

// INVALID_ARGUMENT (starting with the option): fractions that are none, a
// relation that is not there, not named or has splits of its own, no times to
// split by.
absl::Status CheckEdgeDivision(const RawGraph& graph,
                               const ImportOptions& options);

// Divides the edges of a relation as options.edge_split_fractions says; the
// options must have passed CheckEdgeDivision().
//
// Seeds are the user's edges; but with `coalesce` only the first of equal
// (source, destination), with `undirected` too only the first of each
// unordered pair, and self loops only when those of the user stay as they
// are (SelfLoops::kKeep).
//
// Each seed has a key: its time, or a hash of its pair, keyed with split_seed;
// inside one node type of its unordered pair, so that u -> v, v -> u and
// equal pairs are always on the same side. With n seeds and fractions f, the
// cut after share i is at round(n * (f_0 + .. + f_i)) of the keys in ascending
// order; seeds of equal keys go to the earlier side.
//
// Reads the relation once; holds 16 bytes an edge, with `coalesce` 32.
absl::StatusOr<EdgeDivision> DivideEdges(const RawGraph& graph,
                                         const ImportOptions& options);

}  // namespace millrace
