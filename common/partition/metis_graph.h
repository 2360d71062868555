// SPDX-License-Identifier: Apache-2.0
// A dataset as METIS takes it: an undirected graph in CSR form.
#pragma once

#include <metis.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// Deleter for memory that, unlike a vector's, can shrink in place.
struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using MetisArray = std::unique_ptr<idx_t[], FreeDeleter>;

// Node i of type t is vertex type_begin[t] + i.
struct MetisGraph {
  std::vector<int64_t> type_begin;  // [types + 1]
  int constraints = 0;              // one per node type, plus one for in-edges
  std::vector<idx_t> starts;        // [vertices + 1]
  MetisArray neighbors;             // ascending per vertex, no duplicates
  // Number of edges between the two vertices, in both directions.
  MetisArray edge_weights;
  std::vector<idx_t> weights;  // [vertices * constraints]

  int64_t vertices() const { return type_begin.back(); }
  int64_t entries() const { return starts.back(); }
};

// The graph must pass CheckMetisSize(). DATA_LOSS: damaged lists. CANCELLED:
// interrupted. RESOURCE_EXHAUSTED: out of memory.
absl::StatusOr<MetisGraph> BuildMetisGraph(const Store& dataset);

}  // namespace millrace
