// SPDX-License-Identifier: Apache-2.0
// Makes seeds of a batch from original ids. For seeds of splits, see
// split_seed_reader.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {

// Returns the id at position `at` of a lookup table. `part` must be mapped, and
// its table have the position.
// DATA_LOSS: the table is damaged; the message names its file.
absl::StatusOr<uint64_t> ReadLookup(const Store& store, TypeIndex type,
                                    int part, uint64_t at);

// Looks original ids up in the lookup tables of mapped partitions.
// INVALID_ARGUMENT: one is out of range; the message names its position.
// FAILED_PRECONDITION: the partition that has it in its lookup table is not
// mapped. DATA_LOSS: a damaged lookup table.
absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids);

// Looks up the nodes that a list of seeds names. INVALID_ARGUMENT: an original
// id out of range, or a list that CheckExplicitSeeds() refuses. Also the errors
// of `directory`.
absl::StatusOr<ResolvedSeeds> ResolveSeeds(const ResolvedJob& job,
                                           const Schema& schema,
                                           const ExplicitSeeds& list,
                                           EdgeDirectory& directory);

// INVALID_ARGUMENT: a column does not have one row per seed, or the columns do
// not fit the job's kind of seeds.
absl::Status CheckExplicitSeeds(const ResolvedJob& job,
                                const ExplicitSeeds& list);

}  // namespace millrace
