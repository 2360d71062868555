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

// Files by node type or SRC__NAME__DST; the name "" means the only one there
// is.
using NamedFiles = std::map<std::string, std::filesystem::path>;

// A graph in .npy files, written by numpy.save.
struct NpyInput {
  // Integers [2, E], or [E, 2] unless E is 2; in the order of the relations.
  // A single file without a name is a homogeneous graph.
  std::vector<std::pair<std::string, std::filesystem::path>> edges;
  // Without it, a type has as many nodes as its features, labels or times
  // have rows, else as its largest id needs.
  std::map<std::string, int64_t> node_counts;
  NamedFiles features, labels, node_times;                         // [n, ..]
  NamedFiles edge_weights, edge_times, edge_types, edge_features;  // [E, ..]
  // By node type ids, or bool masks of length n; by SRC__NAME__DST pairs of
  // nodes [n, 2], edge ids (places in the edge list) or bool masks of length E.
  NamedFiles train, valid, test;
};

// Reads edge lists (for the largest id) only where a count is not given.
// INVALID_ARGUMENT: a name that is no type or relation of the graph, counts
// that disagree. Errors of OpenNpyRows.
absl::StatusOr<RawGraph> DescribeNpy(const NpyInput& input);

}  // namespace millrace
