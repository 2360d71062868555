// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Lengths of the lists of one relation in a partition that is mapped here.
// Threads: any. The store must outlive it.
class ListLengths {
 public:
  ListLengths(const Store& store, int part, RelationIndex relation,
              Direction direction);

  // Length of the list of a node that `part` owns; 0 if the list extends beyond
  // its file, since reporting damage is left to the draw.
  int64_t Of(uint64_t id) const;

 private:
  const std::span<const int64_t> indptr_;
  const int64_t entries_;
  const uint64_t begin_;  // first id of the partition
};

// Returns how many neighbours a draw picks from a list of `length` entries: an
// upper bound if some of them are too late or excluded. `fanout` may be
// kAllNeighbors.
int64_t MaxPicks(int64_t length, int64_t fanout, bool replace);

// Upper bound on list entries scanned between two cancellation checks, unless a
// single list is longer. (In the worst case a draw reads every entry of a
// list.)
inline constexpr int64_t kMaxSlotsAtOnce = int64_t{1} << 20;

// Returns how many of `ids` to draw for at once, from 1 to `max_nodes`.
size_t NodesAtOnce(const ListLengths& lengths, std::span<const uint64_t> ids,
                   size_t max_nodes);

}  // namespace millrace
