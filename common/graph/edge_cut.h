// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// The number of edges whose ends belong to different partitions. Taken from the
// manifest if the partitioner recorded it; otherwise counted in one pass over
// the lists, which must all be mapped.
// DATA_LOSS: an id is not below its type's node count. CANCELLED: interrupted.
absl::StatusOr<int64_t> CountCutEdges(const Store& store);

}  // namespace millrace
