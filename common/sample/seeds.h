// SPDX-License-Identifier: Apache-2.0
// From (job, epoch, batch) or original ids to the seeds of a batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"

namespace millrace {

struct ResolvedSeeds {
  std::vector<uint64_t> ids;
  std::vector<int64_t> original_ids;  // as ids
};

// The seeds of a batch of the job's split. Needs no mapped partition.
// NOT_FOUND: no such split. OUT_OF_RANGE: no such batch. INVALID_ARGUMENT:
// the job has no split (explicit seeds only).
absl::StatusOr<ResolvedSeeds> SplitSeeds(const Store& store,
                                         const ResolvedJob& job, uint32_t epoch,
                                         uint32_t batch);

// Ids of original ids through the lookup tables of mapped partitions.
// INVALID_ARGUMENT: out of range (names the position). FAILED_PRECONDITION:
// the partition with that lookup range is not mapped.
absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids);

}  // namespace millrace
