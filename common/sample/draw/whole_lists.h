// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/sample/draw/pick_slots.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// The whole lists of some nodes. Spans are valid as long as the object.
class WholeLists {
 public:
  WholeLists() = default;
  // `ids` are ascending and distinct; `picks` holds their lists.
  WholeLists(std::vector<uint64_t> ids, Picks picks);

  // The range of a node's list in the arrays of picks(). The node must be one
  // of the ids.
  ListRange Of(uint64_t id) const;
  const Picks& picks() const { return picks_; }
  // The slots of a list whose neighbour is `node`, in order.
  std::span<const uint32_t> SlotsOf(ListRange list, uint64_t node) const;
  // All slots of a list, ordered by (neighbour, slot).
  std::span<const uint32_t> ByNeighbor(ListRange list) const {
    return std::span(by_neighbor_).subspan(list.begin, list.degree);
  }
  uint64_t NeighborAt(ListRange list, int64_t slot) const {
    return picks_.neighbors[list.begin + slot];
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<int64_t> begin_;  // of each id's list; then the end of the last
  Picks picks_;
  std::vector<uint32_t> by_neighbor_;
};

}  // namespace millrace
