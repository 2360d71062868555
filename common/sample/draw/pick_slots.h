// SPDX-License-Identifier: Apache-2.0
// The rules that pick slots of one neighbour list (docs/determinism.md, section
// 3). They append positions in the list's files (list.begin + slot) to `slots`;
// `fanout` is kAllNeighbors or positive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "common/random/philox_many.h"
#include "common/sample/draw/word_stream.h"
#include "common/sample/job.h"
#include "common/sample/list_range.h"

namespace millrace {

inline void PickEverySlot(ListRange list, std::vector<int64_t>& slots) {
  for (int64_t i = 0; i < list.degree; ++i) slots.push_back(list.begin + i);
}

inline void PickLast(ListRange list, int32_t fanout,
                     std::vector<int64_t>& slots) {
  if (fanout != kAllNeighbors && fanout < list.degree) {
    list = {list.begin + list.degree - fanout, fanout};
  }
  PickEverySlot(list, slots);
}

// Without replacement, uses Floyd's algorithm (Bentley and Floyd 1987).
void PickUniform(WordStream& words, ListRange list, int32_t fanout,
                 bool replace, std::vector<int64_t>& slots);

// `sums` is the partition's weight_sum column. Decreasing sums, which only a
// damaged file has, lead to arbitrary slots of the list.
void PickWeighted(WordStream& words, ListRange list,
                  std::span<const uint64_t> sums, int32_t fanout, bool replace,
                  std::vector<int64_t>& slots);

// A limit that at least `fanout` of `degree` uniform random numbers of 64 bits
// are very likely not to exceed.
uint64_t RankLimit(int32_t fanout, int64_t degree);

// LABOR (Balin and Catalyurek 2023). `key` is that of Purpose::kLabor,
// `originals` are the original ids of the neighbours at all positions of the
// files, and `ranks` is scratch.
template <typename Id>
void PickLabor(PhiloxKey key, uint32_t tree, ListRange list,
               std::span<const Id> originals, int32_t fanout,
               std::vector<NumberedNode>& ranks, std::vector<int64_t>& slots) {
  if (fanout == kAllNeighbors || fanout >= list.degree) {
    return PickEverySlot(list, slots);
  }
  const std::span<const Id> nodes = originals.subspan(list.begin, list.degree);
  ranks.clear();
  PhiloxAtMost(key, nodes, tree, RankLimit(fanout, list.degree), list.begin,
               ranks);
  if (ranks.size() < static_cast<size_t>(fanout)) {
    constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
    ranks.clear();
    PhiloxAtMost(key, nodes, tree, kAll, list.begin, ranks);
  }
  std::nth_element(ranks.begin(), ranks.begin() + fanout - 1, ranks.end());
  const size_t first = slots.size();
  for (int32_t i = 0; i < fanout; ++i) slots.push_back(ranks[i].position);
  std::sort(slots.begin() + static_cast<ptrdiff_t>(first), slots.end());
}

}  // namespace millrace
