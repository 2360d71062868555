// SPDX-License-Identifier: Apache-2.0
#include "common/sample/list_lengths.h"

#include <algorithm>

#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/list_range.h"

namespace millrace {

ListLengths::ListLengths(const Store& store, int part, RelationIndex relation,
                         Direction direction)
    : indptr_(store.partition(part)
                  ->edges[relation]
                  .lists(direction)
                  .indptr.As<int64_t>()),
      entries_(store.partition(part)
                   ->edges[relation]
                   .lists(direction)
                   .indices.rows()),
      begin_(store
                 .book(ListOwnerType(store.schema().relations[relation],
                                     direction))
                 .begin(part)) {}

int64_t ListLengths::Of(uint64_t id) const {
  const uint64_t row = id - begin_;
  if (row + 1 >= indptr_.size()) return 0;
  return RangeOfList(indptr_, row, entries_).value_or(ListRange()).degree;
}

int64_t MaxPicks(int64_t length, int64_t fanout, bool replace) {
  if (length == 0 || fanout == kAllNeighbors) return length;
  return replace ? fanout : std::min(length, fanout);
}

size_t NodesAtOnce(const ListLengths& lengths, std::span<const uint64_t> ids,
                   size_t max_nodes) {
  const size_t most = std::min(max_nodes, ids.size());
  int64_t slots = 0;
  for (size_t i = 0; i < most; ++i) {
    slots += lengths.Of(ids[i]);
    if (slots > kMaxSlotsAtOnce) return std::max<size_t>(i, 1);
  }
  return most;
}

}  // namespace millrace
