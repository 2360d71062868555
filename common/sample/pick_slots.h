// SPDX-License-Identifier: Apache-2.0
// Which slots of one neighbour list are picked; docs/determinism.md section 3.
// All append positions in the list's files (list.begin + slot) to `slots`;
// `fanout` is kAllNeighbors or > 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "common/sample/job.h"
#include "common/sample/word_stream.h"

namespace millrace {

// Where a list, or the part of it that is admissible, lies in the files of
// its partition.
struct ListRange {
  int64_t begin = 0;
  int64_t degree = 0;
};

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

// Without replacement: Floyd's algorithm (Bentley and Floyd 1987).
void PickUniform(WordStream& words, ListRange list, int32_t fanout,
                 bool replace, std::vector<int64_t>& slots);

// `sums`: the file weight_sum of the partition. Sums that descend (a damaged
// file) give some slots of the list.
void PickWeighted(WordStream& words, ListRange list,
                  std::span<const uint64_t> sums, int32_t fanout, bool replace,
                  std::vector<int64_t>& slots);

// `originals`: the original ids of the neighbours at all positions of the
// files; `key` of the purpose labor; `ranks` is scratch.
template <typename Id>
void PickLabor(PhiloxKey key, uint32_t tree, ListRange list,
               std::span<const Id> originals, int32_t fanout,
               std::vector<std::pair<uint64_t, int64_t>>& ranks,
               std::vector<int64_t>& slots) {
  if (fanout == kAllNeighbors || fanout >= list.degree) {
    return PickEverySlot(list, slots);
  }
  ranks.clear();
  for (int64_t i = list.begin; i < list.begin + list.degree; ++i) {
    const uint64_t v = originals[i];
    const PhiloxWords words = Philox(
        key,
        {static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32), tree, 0});
    ranks.emplace_back(words[0] | uint64_t{words[1]} << 32, i);
  }
  std::nth_element(ranks.begin(), ranks.begin() + fanout, ranks.end());
  const size_t first = slots.size();
  for (int32_t i = 0; i < fanout; ++i) slots.push_back(ranks[i].second);
  std::sort(slots.begin() + static_cast<ptrdiff_t>(first), slots.end());
}

}  // namespace millrace
