// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/sample/hop_job.h"

namespace millrace::cuda {

// Upper bounds of the sizes of a batch, which only the device knows exactly,
// before one of its hops. Memory is allocated for as much.
class HopBounds {
 public:
  HopBounds() = default;
  // Before the first hop. The job must outlive it.
  HopBounds(const HopJob& job, std::span<const SeedNodes> seeds)
      : job_(&job),
        nodes_(job.node_counts.size()),
        edges_(job.relations.size()) {
    for (const SeedNodes& list : seeds) {
      nodes_[list.type] += list.ids.size();
      if (job.disjoint) trees_ += list.ids.size();
    }
    if (!job.disjoint) trees_ = 1;
    frontier_ = seeds_ = nodes_;
  }

  // Nodes of a type, those of them that the last hop added, and edges of a
  // relation.
  uint64_t nodes(size_t type) const { return nodes_[type]; }
  uint64_t frontier(size_t type) const { return frontier_[type]; }
  uint64_t edges(size_t relation) const { return edges_[relation]; }
  // The most picks of a relation in any hop so far.
  uint64_t picks() const { return picks_; }

  // Replaces bounds by sizes that the device has given.
  void SetNodes(size_t type, uint64_t count) { nodes_[type] = count; }
  void SetEdges(size_t relation, uint64_t count) { edges_[relation] = count; }

  // Whether the bound of the next hop's picks is so large, or there is none,
  // that the host has to wait for their number.
  bool NeedTotals(int hop) const {
    for (const HopRelation& relation : job_->relations) {
      const int32_t fanout = relation.fanouts[hop];
      const uint64_t frontier = frontier_[relation.list_type];
      if (fanout != 0 && frontier > 0 &&
          (fanout < 0 || frontier > kMaxAssumedPicks / fanout)) {
        return true;
      }
    }
    return false;
  }

  // The most picks of a relation in the next hop, unless it takes all
  // neighbours.
  uint64_t MostPicks(int hop, size_t relation) const {
    const HopRelation& of = job_->relations[relation];
    return frontier_[of.list_type] *
           static_cast<uint64_t>(std::max(of.fanouts[hop], 0));
  }

  // Goes on behind the next hop. `totals`: its picks by relation, or empty if
  // they are not known.
  void Advance(int hop, std::span<const uint64_t> totals) {
    std::vector<uint64_t> added(nodes_.size());
    for (size_t r = 0; r < edges_.size(); ++r) {
      const uint64_t picks = totals.empty() ? MostPicks(hop, r) : totals[r];
      picks_ = std::max(picks_, picks);
      edges_[r] += picks;
      added[job_->relations[r].neighbor_type] += picks;
    }
    for (size_t t = 0; t < nodes_.size(); ++t) {
      frontier_[t] = std::min(added[t], MostNodes(t));
      nodes_[t] = std::min(nodes_[t] + added[t], MostNodes(t));
    }
  }

 private:
  // Above this many picks, memory is allocated for as many as there are instead
  // of as many as there could be.
  static constexpr uint64_t kMaxAssumedPicks = uint64_t{64} << 20;

  // The most nodes of a type that the batch can have: each node once in each
  // tree, and the seeds.
  uint64_t MostNodes(size_t type) const {
    const uint64_t graph = job_->node_counts[type];
    const uint64_t trees = std::max<uint64_t>(trees_, 1);
    const uint64_t all =
        graph > kMaxHopRows / trees ? kMaxHopRows : graph * trees;
    return std::min(all + seeds_[type], kMaxHopRows);
  }

  const HopJob* job_ = nullptr;
  uint64_t trees_ = 0;
  std::vector<uint64_t> nodes_, frontier_, seeds_;  // per type
  std::vector<uint64_t> edges_;                     // per relation
  uint64_t picks_ = 0;
};

}  // namespace millrace::cuda
