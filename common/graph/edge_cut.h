// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// The number of edges whose ends belong to different partitions. It is taken
// from the manifest if the partitioner recorded it, and otherwise counted in
// one pass over the lists, for which all partitions must be mapped.
// DATA_LOSS: an id is not below its type's node count. CANCELLED: interrupted.
absl::StatusOr<int64_t> CountCutEdges(const Store& store);

}  // namespace millrace
