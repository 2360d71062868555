// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// How long the lists of one relation are in a partition that is mapped here.
// Threads: any. The store must outlive it.
class ListLengths {
 public:
  ListLengths(const Store& store, int part, RelationIndex relation,
              Direction direction);

  // Of a node that `part` owns; 0 where the list leaves its file: what is
  // damaged is for the draw to report.
  int64_t Of(uint64_t id) const;

 private:
  const std::span<const int64_t> indptr_;
  const int64_t entries_;
  const uint64_t begin_;  // of the partition's ids
};

// Drawing looks at every slot of a list, at worst: that many, in lists of
// several nodes, are drawn from between two looks at the client.
inline constexpr int64_t kMaxSlotsAtOnce = int64_t{1} << 20;

// How many of `ids` to draw for at once: one at least, `max_nodes` at most.
size_t NodesAtOnce(const ListLengths& lengths, std::span<const uint64_t> ids,
                   size_t max_nodes);

}  // namespace millrace
