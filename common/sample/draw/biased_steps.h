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
// from t, a slot has the weight 1/p if its neighbour is t, 1 if the neighbour
// is in the list of t, and 1/q otherwise. The lists of t and of the node where
// the walker is may belong to two owners, so both are fetched whole; that of t
// has been here since the step before. Threads: one.
class BiasedSteps {
 public:
  // `relation` is that of all steps. `source` and `poller` must outlive it.
  BiasedSteps(const JobSpec& spec, RelationIndex relation,
              NeighborSource& source, CancelPoller& poller);

  // Memory that it takes for each walker, besides the lists.
  static constexpr uint64_t kBytesPerWalker = sizeof(uint64_t);

  // Appends a pick for each walker, or none where the list is empty. `walkers`
  // are their numbers, and `at` are the ids of the nodes where they are. Each
  // of them came there by its pick of the call before. Errors are those of the
  // source and the poller.
  absl::Status Draw(DrawContext context, std::span<const uint32_t> walkers,
                    std::span<const uint64_t> at, Picks& picks);

 private:
  // A slot whose weight is not that of most slots.
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
  WholeLists lists_;                  // lists of the nodes where walkers are
  WholeLists lists_before_;           // lists of the nodes where they were
  std::vector<uint64_t> before_;      // [walker]: id of the node where it was
  std::vector<SpecialSlot> special_;  // scratch
};

}  // namespace millrace
