// SPDX-License-Identifier: Apache-2.0
// From original ids to the seeds of a batch; split_seeds.h has the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// Ids of original ids through the lookup tables of mapped partitions.
// INVALID_ARGUMENT: out of range (names the position). FAILED_PRECONDITION:
// the partition with that lookup range is not mapped.
absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids);

}  // namespace millrace
