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
  // split. If empty, all nodes are.
  std::string_view within = {};
};

// The nodes whose lists of one relation are drawn from in a hop. All spans are
// views that are valid during the call.
struct Frontier {
  RelationIndex relation = 0;
  int32_t fanout = 0;                    // kAllNeighbors or > 0
  std::span<const uint64_t> ids = {};    // nodes of any owners
  std::span<const uint32_t> trees = {};  // [ids]; empty unless disjoint
  // [ids]: entries that are later are skipped. Empty unless temporal.
  std::span<const int64_t> times = {};
  // Nodes of the neighbours' type; for DrawRule::kAmong only.
  const NodeSet* among = nullptr;
  // Entries that are skipped; null if none are.
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
  std::vector<uint32_t> counts;     // picks of each node of the frontier
  std::vector<uint64_t> neighbors;  // ids of the picks, node by node
  std::vector<int64_t> edge_ids;    // [neighbors], or empty
  // [neighbors]: see EdgeBlock::feature_row. Empty if they are not asked for,
  // or if the relation has no features.
  std::vector<uint64_t> feature_rows;

  void Clear() {
    counts.clear();
    neighbors.clear();
    edge_ids.clear();
    feature_rows.clear();
  }
  // Appends the `count` picks of one node that `from` has from place `at` on.
  void AppendNode(const Picks& from, size_t at, uint32_t count);
};

class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  // Expands all relations of one hop. picks[i], which must be empty, gets the
  // answer to frontiers[i]. Blocks until all owners have answered or the
  // caller's deadline passes. Called from one thread at a time.
  // DATA_LOSS: damaged lists. UNAVAILABLE: an owner is gone (names the
  // partition). DEADLINE_EXCEEDED, CANCELLED: as CheckNotCancelled().
  virtual absl::Status Expand(const DrawContext& context,
                              std::span<const Frontier> frontiers,
                              std::span<Picks> picks) = 0;

  // Reserves `bytes` more of memory for the batch, before it allocates them
  // besides what Expand draws.
  // FAILED_PRECONDITION: more than a batch may ever have. RESOURCE_EXHAUSTED:
  // more than there is now.
  virtual absl::Status Reserve(uint64_t /*bytes*/) { return absl::OkStatus(); }
  // Gives back what was reserved and the batch has freed.
  virtual void Release(uint64_t /*bytes*/) {}

  // Gives back what Expand took for `picks` picks, drawn as `context` says,
  // which the batch has freed.
  virtual void ReleasePicks(const DrawContext& /*context*/,
                            uint64_t /*picks*/) {}

  // CANCELLED, DEADLINE_EXCEEDED: nobody waits for the batch any more, which
  // never happens to batches that are made in process.
  virtual absl::Status CheckNotCancelled() const { return absl::OkStatus(); }
};

}  // namespace millrace
