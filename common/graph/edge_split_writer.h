// SPDX-License-Identifier: Apache-2.0
// Writes splits whose seeds are pairs of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/graph/manifest.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"

namespace millrace {

// A split in original ids; columns that do not exist are absent arrays.
struct EdgeSplitColumns {
  RelationIndex relation = 0;
  std::string name;
  Array src, dst;   // [s] int64
  Array edge_id;    // [s] int64
  Array time;       // [s] int64
  Array edge_type;  // [s] int32
  Array label;      // [s] int64 or float32
  Array negative;   // [s, k] int64: destinations
};

// Returns the id of the node with an original id, which is in range.
using IdOfFn = std::function<uint64_t(TypeIndex type, int64_t original)>;
using WriteArrayFn =
    std::function<absl::Status(const std::string& path, const Array& array)>;

// Writes the files of a split with `write` and returns its description.
// INVALID_ARGUMENT: a node that does not exist (the message names column and
// position), or columns of different lengths. Also the errors of `write`.
absl::StatusOr<EdgeSplitInfo> WriteEdgeSplit(
    const EdgeSplitColumns& split, const Schema& schema,
    const std::vector<PartitionBook>& books, const IdOfFn& id_of,
    const WriteArrayFn& write);

}  // namespace millrace
