// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/edge_split_writer.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"

namespace millrace {

// The edges of a relation with the given edge ids, in their order, or all edges
// in the order of their ids, with the times and types that the relation has.
// All partitions must be mapped. Reads all lists of the relation, twice if
// `edge_ids` is nullopt. INVALID_ARGUMENT: no edge has one of the ids; the
// message names its position and value.
absl::StatusOr<EdgeSplitColumns> EdgesById(
    const Store& store, RelationIndex relation,
    const std::optional<std::vector<int64_t>>& edge_ids);

}  // namespace millrace
