// SPDX-License-Identifier: Apache-2.0
// Where the sampler gets its neighbours: the seam between the pure sampling
// code and partitions that may be mapped here or served elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/graph/schema.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/excluded_edges.h"

namespace millrace {

using NodeSet = absl::flat_hash_set<uint64_t>;  // ids

// What a list is drawn by; docs/determinism.md section 3.
enum class DrawRule : uint8_t {
  kUniform = 0,
  kWeighted = 1,
  kLabor = 2,
  kLast = 3,   // no draw: the last slots
  kAmong = 4,  // no draw: the slots whose neighbour is one of Frontier::among
};

// What names the random numbers of a hop, and how lists are drawn from.
struct DrawContext {
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  int hop = 0;
  Direction direction = Direction::kIn;
  DrawRule rule = DrawRule::kUniform;
  bool replace = false;       // kUniform, kWeighted
  bool walk = false;          // random numbers of walks, not of neighbours
  bool edge_ids = false;      // fill Picks::edge_ids
  bool feature_rows = false;  // fill Picks::feature_rows
  // Split outside of which no node is a neighbour, where its type has that
  // split; empty: all are.
  std::string_view within = {};
};

// The nodes whose lists of one relation are drawn from in a hop. Views; valid
// during the call.
struct Frontier {
  RelationIndex relation = 0;
  int32_t fanout = 0;                    // kAllNeighbors or > 0
  std::span<const uint64_t> ids = {};    // of the list's type, any owner
  std::span<const uint32_t> trees = {};  // as ids; empty unless disjoint
  // As ids: slots that are later are not there. Empty unless temporal.
  std::span<const int64_t> times = {};
  // Nodes of the neighbours' type; DrawRule::kAmong only.
  const NodeSet* among = nullptr;
  // Entries that are not there; null: none.
  const ExcludedEdges* excluded = nullptr;
  // Called within long lists; null if the draw cannot be cancelled.
  CancelPoller* poller = nullptr;

  uint32_t tree(size_t i) const { return trees.empty() ? 0 : trees[i]; }

  // The same for some of the nodes.
  Frontier Part(size_t begin, size_t count) const {
    Frontier part = *this;
    part.ids = ids.subspan(begin, count);
    if (!trees.empty()) part.trees = trees.subspan(begin, count);
    if (!times.empty()) part.times = times.subspan(begin, count);
    return part;
  }
};

// The answer to one Frontier, in its order.
struct Picks {
  std::vector<uint32_t> counts;     // per frontier node
  std::vector<uint64_t> neighbors;  // ids, counts concatenated, pick order
  std::vector<int64_t> edge_ids;    // as neighbors, or empty
  // As neighbors, or empty: see EdgeBlock::feature_row. Empty too where the
  // relation has no features.
  std::vector<uint64_t> feature_rows;

  void Clear() {
    counts.clear();
    neighbors.clear();
    edge_ids.clear();
    feature_rows.clear();
  }
  // Appends the `count` picks of one node that stand in `from` from `at` on.
  void AppendNode(const Picks& from, size_t at, uint32_t count);
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

  // Promises the batch `bytes` more of memory, before it allocates them besides
  // what Expand draws; in process there is no limit.
  // FAILED_PRECONDITION: more than it may ever have. RESOURCE_EXHAUSTED: more
  // than there is now.
  virtual absl::Status Reserve(uint64_t /*bytes*/) { return absl::OkStatus(); }
  // Gives back what was promised; the batch has freed it.
  virtual void Release(uint64_t /*bytes*/) {}

  // Gives back what Expand took for `picks` picks, drawn as `context` says,
  // which the batch has freed.
  virtual void ReleasePicks(const DrawContext& /*context*/,
                            uint64_t /*picks*/) {}

  // CANCELLED, DEADLINE_EXCEEDED: nobody waits for the batch any more. Never
  // happens to batches that are made in process.
  virtual absl::Status CheckNotCancelled() const { return absl::OkStatus(); }
};

}  // namespace millrace
