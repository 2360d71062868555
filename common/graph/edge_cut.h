// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// Edges whose ends belong to different partitions: what the partitioner
// noted, or else one pass over the lists, which must all be mapped.
// DATA_LOSS: an id beyond its type. CANCELLED: interrupted.
absl::StatusOr<int64_t> CountCutEdges(const Store& store);

}  // namespace millrace
