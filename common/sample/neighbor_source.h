// SPDX-License-Identifier: Apache-2.0
// Where the sampler gets its neighbours: the seam between the pure sampling
// code and partitions that may be mapped here or served elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/schema.h"

namespace millrace {

// What names the random numbers of a hop, and how lists are drawn from.
struct DrawContext {
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  int hop = 0;
  Direction direction = Direction::kIn;
  bool replace = false;
  bool edge_ids = false;  // fill Picks::edge_ids
};

// The nodes whose lists of one relation are drawn from in a hop. Views; valid
// during the call.
struct Frontier {
  RelationIndex relation = 0;
  int32_t fanout = 0;                    // kAllNeighbors or > 0
  std::span<const uint64_t> ids = {};    // of the list's type, any owner
  std::span<const uint32_t> trees = {};  // as ids; empty unless disjoint
};

// The answer to one Frontier, in its order.
struct Picks {
  std::vector<uint32_t> counts;     // per frontier node
  std::vector<uint64_t> neighbors;  // ids, counts concatenated, pick order
  std::vector<int64_t> edge_ids;    // as neighbors, or empty

  void Clear() {
    counts.clear();
    neighbors.clear();
    edge_ids.clear();
  }
};

class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  // Expands all relations of one hop; picks[i] answers frontiers[i] and
  // arrives cleared. Blocks until all owners answered or the caller's
  // deadline passed. Called from one thread at a time.
  // Errors: DATA_LOSS (damaged lists), UNAVAILABLE (an owner is gone, naming
  // the partition), DEADLINE_EXCEEDED, CANCELLED.
  virtual absl::Status Expand(const DrawContext& context,
                              std::span<const Frontier> frontiers,
                              std::span<Picks> picks) = 0;
};

}  // namespace millrace
