// SPDX-License-Identifier: Apache-2.0
// Divides the edges of an imported relation into splits.
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
  size_t edges = 0;  // index in RawGraph::edges
  // The seeds of train, valid and test: positions in the user's edge list,
  // ascending.
  std::array<std::vector<int64_t>, 3> ids;
  // By position, whether the edge is left out of the graph. Empty if none is.
  std::vector<bool> held_out;
};

// INVALID_ARGUMENT: invalid fractions, a relation that does not exist, is not
// named or has splits already, or no times to split by; the message starts with
// the option. RESOURCE_EXHAUSTED: too little memory for DivideEdges().
absl::Status CheckEdgeDivision(const RawGraph& graph,
                               const ImportOptions& options);

// Divides the edges of a relation according to options.edge_split_fractions.
// The options must have passed CheckEdgeDivision().
//
// Seeds are the user's edges, with these exceptions: with `coalesce`, only the
// first edge of each (source, destination) is a seed, and with `undirected` as
// well, only the first of each unordered pair. Self loops are seeds only if the
// user's self loops are left unchanged (SelfLoops::kKeep).
//
// Each seed has a key: its time, or a hash of its pair of nodes, keyed by
// split_seed. If both ends are of the same node type, the pair is hashed
// unordered, so that u -> v, v -> u and equal pairs are always in the same
// share. With n seeds and fractions f, the cut after share i is at position
// round(n * (f_0 + .. + f_i)) of the keys in ascending order; seeds with equal
// keys go to the earlier share.
//
// Reads the relation once. Needs at least 16 bytes of memory per edge, or 32
// with `coalesce`. Fails as EdgeReader does.
absl::StatusOr<EdgeDivision> DivideEdges(const RawGraph& graph,
                                         const ImportOptions& options);

}  // namespace millrace
