// SPDX-License-Identifier: Apache-2.0
// From original ids to the seeds of a batch; split_seeds.h has the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/seed_list.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {

// Ids of original ids through the lookup tables of mapped partitions.
// INVALID_ARGUMENT: out of range (names the position). FAILED_PRECONDITION:
// the partition with that lookup range is not mapped.
absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids);

// Looks up the nodes that a list of seeds names.
// INVALID_ARGUMENT: an original id out of range, columns that have not as many
// rows as there are seeds (names the option). Others as EdgeDirectory.
absl::StatusOr<ResolvedSeeds> ResolveSeeds(const ResolvedJob& job,
                                           const Schema& schema,
                                           const SeedList& list,
                                           EdgeDirectory& directory);

// The checks of ResolveSeeds that need no look-up.
absl::Status CheckSeedList(const ResolvedJob& job, const SeedList& list);

}  // namespace millrace
