// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Files by node type or SRC__NAME__DST; "" stands for the only type or
// relation.
using NamedFiles = std::map<std::string, std::filesystem::path>;

// A graph in .npy files, as numpy.save writes them.
struct NpyInput {
  // Integers [2, E], or [E, 2] unless E is 2, in the order of the relations. A
  // single file without a name means a homogeneous graph.
  std::vector<std::pair<std::string, std::filesystem::path>> edges;
  // If a type has no entry, its count is the number of rows of its features,
  // labels or times, or, if it has none of these, its largest id plus 1.
  std::map<std::string, int64_t> node_counts;
  NamedFiles features, labels, node_times;                         // [n, ..]
  NamedFiles edge_weights, edge_times, edge_types, edge_features;  // [E, ..]
  // For a node type: ids, or a bool mask of length n. For SRC__NAME__DST: pairs
  // of nodes [n, 2], edge ids (positions in the edge list), or a bool mask of
  // length E.
  NamedFiles train, valid, test;
};

// Reads edge lists only to find the largest id of a type of unknown count.
// INVALID_ARGUMENT: a name that is not a type or relation of the graph, or
// counts that disagree. Also the errors of OpenNpyRows().
absl::StatusOr<RawGraph> OpenNpy(const NpyInput& input);

}  // namespace millrace
