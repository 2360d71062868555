// SPDX-License-Identifier: Apache-2.0
// Where the sampler gets neighbours from: the interface between the pure
// sampling code and partitions, which may be mapped here or served elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/graph/schema.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw_rule.h"
#include "common/sample/excluded_edges.h"

namespace millrace {

using NodeSet = absl::flat_hash_set<uint64_t>;  // ids

// Identifies the random numbers of a hop, and says how lists are drawn from.
struct DrawContext {
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  int hop = 0;
  Direction direction = Direction::kIn;
  DrawRule rule = DrawRule::kUniform;
  bool replace = false;       // false unless DrawRuleInfo::takes_replace
  bool walk = false;          // random numbers of walks, not of neighbours
  bool edge_ids = false;      // fill Picks::edge_ids
  bool feature_rows = false;  // fill Picks::feature_rows
  // If not empty, the name of a split: of node types that have it, only its
  // nodes are neighbours.
  std::string_view within = {};
};

// The nodes whose lists of one relation are drawn from in a hop. The views are
// valid during the call.
struct Frontier {
  RelationIndex relation = 0;
  int32_t fanout = 0;                    // kAllNeighbors or > 0
  std::span<const uint64_t> ids = {};    // of the list's type, any owner
  std::span<const uint32_t> trees = {};  // parallel to ids, or empty
  // Parallel to ids: slots that are later than the time are ignored. Empty
  // unless temporal.
  std::span<const int64_t> times = {};
  // Nodes of the neighbours' type; for DrawRule::kAmong only.
  const NodeSet* among = nullptr;
  // Entries to ignore; null if there are none.
  const ExcludedEdges* excluded = nullptr;
  // Polled within long lists; null if the draw cannot be cancelled.
  CancelPoller* poller = nullptr;

  uint32_t tree(size_t i) const { return trees.empty() ? 0 : trees[i]; }

  // Returns the part of the frontier with the nodes [begin, begin + count).
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
  std::vector<uint64_t> neighbors;  // ids, node after node, in pick order
  std::vector<int64_t> edge_ids;    // parallel to neighbors, or empty
  // Parallel to neighbors, or empty; see EdgeBlock::feature_row. Also empty if
  // the relation has no features.
  std::vector<uint64_t> feature_rows;

  void Clear() {
    counts.clear();
    neighbors.clear();
    edge_ids.clear();
    feature_rows.clear();
  }
  // Appends the picks of one node: `count` from position `at` of `from` on.
  void AppendNode(const Picks& from, size_t at, uint32_t count);
};

class NeighborSource {
 public:
  virtual ~NeighborSource() = default;

  // Expands all relations of one hop: picks[i], which must be empty, receives
  // the picks for frontiers[i]. Blocks until all owners have answered or the
  // caller's deadline has passed. Called from one thread at a time.
  // DATA_LOSS: damaged lists. UNAVAILABLE: no owner of a partition answers; the
  // message names it. DEADLINE_EXCEEDED, CANCELLED: the caller has stopped
  // waiting.
  virtual absl::Status Expand(const DrawContext& context,
                              std::span<const Frontier> frontiers,
                              std::span<Picks> picks) = 0;

  // Reserves `bytes` of memory for the batch, on top of what Expand() draws.
  // Must be called before they are allocated.
  // FAILED_PRECONDITION: more than a batch may ever have. RESOURCE_EXHAUSTED:
  // more than is available now.
  virtual absl::Status Reserve(uint64_t /*bytes*/) { return absl::OkStatus(); }
  // Returns reserved memory that the batch has freed.
  virtual void Release(uint64_t /*bytes*/) {}

  // Returns the memory that Expand() counted for `picks` picks drawn with
  // `context`, once the batch has freed them.
  virtual void ReleasePicks(const DrawContext& /*context*/,
                            uint64_t /*picks*/) {}

  // CANCELLED, DEADLINE_EXCEEDED: nobody is waiting for the batch any longer.
  // Always OK in process.
  virtual absl::Status CheckNotCancelled() const { return absl::OkStatus(); }
};

}  // namespace millrace
