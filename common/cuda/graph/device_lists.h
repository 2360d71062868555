// SPDX-License-Identifier: Apache-2.0
// Neighbour lists as kernels read them.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace millrace::cuda {

// The most nodes of a type, or edges of a relation, that kernels put into a
// batch: what 32-bit positions can number, without the sign.
inline constexpr uint64_t kMaxHopRows = 0x7FFFFFFF;

// A column of ids of 32 or 64 bits.
struct IdColumn {
  const void* data = nullptr;
  bool wide = false;

  MILLRACE_HOST_DEVICE uint64_t operator[](int64_t row) const {
    return wide ? static_cast<const uint64_t*>(data)[row]
                : static_cast<const uint32_t*>(data)[row];
  }
};

// The lists of one relation and direction in one partition; see NeighborLists
// and NodeColumns of common/graph/store.h. Columns that do not exist are null.
struct PartLists {
  uint64_t first_id = 0;    // of the nodes that have the lists
  uint64_t node_count = 0;  // of these
  int64_t edge_count = 0;
  IdColumn node_originals;
  const int64_t* indptr = nullptr;
  IdColumn indices;
  IdColumn originals;  // of the neighbours; the indices in a dataset
  const int64_t* times = nullptr;
  const uint64_t* weight_sums = nullptr;
  const int64_t* edge_ids = nullptr;
  const int64_t* feature_rows = nullptr;  // null: the position in the lists
};

// All partitions' lists, ascending by first_id. In the device's memory.
struct Lists {
  const PartLists* parts = nullptr;
  int part_count = 0;
  uint64_t neighbor_limit = 0;  // number of nodes of the neighbours' type
};

// An entry that is left out of a list; as ExcludedEdges::Entry.
struct ExcludedEntry {
  uint64_t neighbor = 0;  // id
  int64_t time = 0;       // 0 unless only entries with this time are left out

  MILLRACE_HOST_DEVICE friend bool operator<(const ExcludedEntry& a,
                                             const ExcludedEntry& b) {
    return a.neighbor != b.neighbor ? a.neighbor < b.neighbor : a.time < b.time;
  }
};

}  // namespace millrace::cuda
