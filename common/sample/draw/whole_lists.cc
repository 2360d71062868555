// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/whole_lists.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace {

WholeLists::WholeLists(std::vector<uint64_t> ids, Picks picks)
    : ids_(std::move(ids)), begin_({0}), picks_(std::move(picks)) {
  by_neighbor_.resize(picks_.neighbors.size());
  for (const uint32_t count : picks_.counts) {
    const ListRange list = {begin_.back(), count};
    begin_.push_back(list.begin + list.degree);
    const auto slots = std::span(by_neighbor_).subspan(list.begin, count);
    std::iota(slots.begin(), slots.end(), 0);
    std::sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(NeighborAt(list, a), a) <
             std::pair(NeighborAt(list, b), b);
    });
  }
}

ListRange WholeLists::Of(uint64_t id) const {
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin();
  return {begin_[at], begin_[at + 1] - begin_[at]};
}

std::span<const uint32_t> WholeLists::SlotsOf(ListRange list,
                                              uint64_t node) const {
  struct ByNeighborOf {
    const WholeLists& lists;
    ListRange list;
    bool operator()(uint32_t slot, uint64_t node) const {
      return lists.NeighborAt(list, slot) < node;
    }
    bool operator()(uint64_t node, uint32_t slot) const {
      return node < lists.NeighborAt(list, slot);
    }
  };
  const std::span<const uint32_t> slots = ByNeighbor(list);
  const auto [first, last] = std::equal_range(slots.begin(), slots.end(), node,
                                              ByNeighborOf{*this, list});
  return {first, last};
}

}  // namespace millrace
