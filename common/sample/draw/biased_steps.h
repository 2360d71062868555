// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw/whole_lists.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Draws steps of node2vec (Grover and Leskovec 2016). For a walker that came
// from t, a slot has weight 1/p if its neighbour is t, 1 if its neighbour is in
// the list of t, and 1/q otherwise. The list of t and that of the current node
// may belong to different owners, so both are fetched whole; that of t was
// fetched in the previous step.
// Not thread-safe.
class BiasedSteps {
 public:
  // `relation` is that of all steps. `source` and `poller` must outlive it.
  BiasedSteps(const JobSpec& spec, RelationIndex relation,
              NeighborSource& source, CancelPoller& poller);

  // Memory per walker, in addition to the lists.
  static constexpr uint64_t kBytesPerWalker = sizeof(uint64_t);

  // Appends a pick for each walker, or none if the list of its node is empty.
  // `walkers` are their numbers, and `at` the ids of their current nodes. Every
  // walker must have moved there by a pick of the previous call. Returns the
  // errors of the source and the poller.
  absl::Status Draw(DrawContext context, std::span<const uint32_t> walkers,
                    std::span<const uint64_t> at, Picks& picks);

 private:
  // A slot whose weight differs from that of most slots.
  struct SpecialSlot {
    uint32_t slot;
    uint64_t weight;
    friend auto operator<=>(const SpecialSlot&, const SpecialSlot&) = default;
  };

  absl::Status Fetch(const DrawContext& context, std::vector<uint64_t> ids);
  absl::Status FindSpecialSlots(ListRange list, uint64_t before);
  int64_t SlotAt(uint64_t x, int64_t degree) const;

  const RelationIndex relation_;
  NeighborSource& source_;
  CancelPoller& poller_;
  uint64_t back_weight_;  // 1/p, 1 and 1/q as integers
  uint64_t near_weight_;
  uint64_t far_weight_;
  bool first_ = true;                 // no walker has taken a step
  WholeLists lists_;                  // lists of the walkers' current nodes
  WholeLists lists_before_;           // lists of their previous nodes
  std::vector<uint64_t> before_;      // [walker]: id of its previous node
  std::vector<SpecialSlot> special_;  // scratch
};

}  // namespace millrace
