// SPDX-License-Identifier: Apache-2.0
// Reads the neighbour lists of a dataset once, from first to last node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/interrupt.h"
#include "common/base/npy.h"
#include "common/base/status_macros.h"
#include "common/graph/store.h"

namespace millrace {

// The lists of one relation and direction of a dataset. A view: valid as long
// as the store.
struct DatasetLists {
  RelationIndex relation = 0;
  Direction direction = Direction::kIn;
  TypeIndex node_type = 0;      // whose lists they are
  TypeIndex neighbor_type = 0;  // of the entries
  int64_t neighbor_count = 0;   // nodes of neighbor_type
  const NeighborLists* lists = nullptr;
  std::string file;  // of the neighbours, for messages

  std::span<const int64_t> starts() const {
    return lists->indptr.As<int64_t>();
  }
};

// The relation must have lists in that direction.
DatasetLists ListsOf(const Store& dataset, RelationIndex relation,
                     Direction direction);
// The whole graph once: per relation its in-lists, or its out-lists where it
// has no others.
std::vector<DatasetLists> TopologyOf(const Store& dataset);

// DATA_LOSS unless the starts ascend from 0 to the number of entries.
absl::Status CheckStarts(const DatasetLists& lists);
// DATA_LOSS: an entry is not an id of the neighbour's type.
absl::Status BadNeighbor(const DatasetLists& lists, int64_t entry,
                         uint64_t neighbor);

// The in-degrees of the destinations of a relation, added to `degrees`.
absl::Status AddInDegrees(const Store& dataset, RelationIndex relation,
                          std::span<int64_t> degrees);

namespace list_scan_internal {

inline constexpr int64_t kEntriesPerStep = int64_t{1} << 22;

template <typename Id, typename Visit>
absl::Status Scan(const DatasetLists& lists, Visit& visit) {
  const std::span<const int64_t> starts = lists.starts();
  const std::span<const Id> entries = lists.lists->indices.As<Id>();
  int64_t dropped = 0;
  for (size_t node = 0; node + 1 < starts.size(); ++node) {
    const std::span<const Id> list =
        entries.subspan(static_cast<size_t>(starts[node]),
                        static_cast<size_t>(starts[node + 1] - starts[node]));
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] >= static_cast<uint64_t>(lists.neighbor_count)) {
        return BadNeighbor(lists, starts[node] + static_cast<int64_t>(i),
                           list[i]);
      }
    }
    visit(node, list);
    if (starts[node + 1] - dropped >= kEntriesPerStep) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      DropRows(lists.lists->indices, dropped, starts[node + 1]);
      dropped = starts[node + 1];
    }
  }
  AdviseAccess(lists.lists->indices, Access::kDone);
  return CheckInterrupted();
}

}  // namespace list_scan_internal

// Calls visit(size_t node, span<const Id> neighbours) for every node in order,
// Id being uint32_t or uint64_t; all neighbours are in range. Resident memory
// stays flat. DATA_LOSS: damaged lists, naming the file. CANCELLED.
template <typename Visit>
absl::Status ScanLists(const DatasetLists& lists, Visit visit) {
  MILLRACE_RETURN_IF_ERROR(CheckStarts(lists));
  if (lists.lists->indices.dtype() == DType::kUint32) {
    return list_scan_internal::Scan<uint32_t>(lists, visit);
  }
  return list_scan_internal::Scan<uint64_t>(lists, visit);
}

}  // namespace millrace
