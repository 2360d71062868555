// SPDX-License-Identifier: Apache-2.0
// Reads the neighbour lists of a dataset in one pass from the first node to the
// last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/file/npy.h"
#include "common/graph/store.h"

namespace millrace {

// The lists of one relation and direction of a dataset. A view, valid as long
// as the store.
struct DatasetLists {
  RelationIndex relation = 0;
  Direction direction = Direction::kIn;
  TypeIndex node_type = 0;      // type of the nodes that have the lists
  TypeIndex neighbor_type = 0;  // type of the entries
  int64_t neighbor_count = 0;   // number of nodes of neighbor_type
  const NeighborLists* lists = nullptr;
  std::string file;  // the file with the entries, for messages

  std::span<const int64_t> starts() const {
    return lists->indptr.As<int64_t>();
  }
};

// The relation must have lists in that direction.
DatasetLists FindLists(const Store& dataset, RelationIndex relation,
                       Direction direction);
// The lists that together contain each edge of the graph once: for each
// relation its in-lists or, if it has none, its out-lists.
std::vector<DatasetLists> FindTopology(const Store& dataset);

// DATA_LOSS: the starts do not increase from 0 to the number of entries; the
// message names the file.
absl::Status CheckStarts(const DatasetLists& lists);
// The DATA_LOSS error for an entry that is not an id of the neighbours' type.
absl::Status NeighborError(const DatasetLists& lists, int64_t entry,
                           uint64_t neighbor);

// Adds the in-degrees of the destinations of a relation to `degrees`, by
// original id. Fails as ScanLists() does.
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
        return NeighborError(lists, starts[node] + static_cast<int64_t>(i),
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
// where Id is uint32_t or uint64_t and all neighbours are in range. Resident
// memory stays flat. DATA_LOSS: damaged lists; the message names the file.
// CANCELLED: interrupted.
template <typename Visit>
absl::Status ScanLists(const DatasetLists& lists, Visit visit) {
  MILLRACE_RETURN_IF_ERROR(CheckStarts(lists));
  if (lists.lists->indices.dtype() == DType::kUint32) {
    return list_scan_internal::Scan<uint32_t>(lists, visit);
  }
  return list_scan_internal::Scan<uint64_t>(lists, visit);
}

}  // namespace millrace
