// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/sample/seeds/seed_plan.h"

namespace millrace {

// The batches of an epoch of a job, whether its seeds come from a split or
// from a list of the user's: turns (epoch, batch) into a request.
// Immutable; any thread.
class EpochPlan {
 public:
  // `seeds`: instead of the job's split.
  // NOT_FOUND: no such split (lists those there are). INVALID_ARGUMENT:
  // `seeds` with --seed-order local.
  static absl::StatusOr<EpochPlan> Create(
      const ResolvedJob& job, const Manifest& manifest,
      std::optional<SeedList> seeds = std::nullopt);
  // Lists of one size for each epoch from 0 on, instead of the split.
  // INVALID_ARGUMENT: no list, lists of several sizes, and as Create.
  static absl::StatusOr<EpochPlan> OfLists(const ResolvedJob& job,
                                           std::vector<SeedList> epochs);

  uint32_t batch_count() const { return plan_.batch_count(); }
  int64_t seed_count() const { return plan_.seed_count(); }
  // OUT_OF_RANGE: batch >= batch_count(), an epoch without a list.
  absl::StatusOr<BatchRequest> Request(uint32_t epoch, uint32_t batch,
                                       const Columns& columns) const;

 private:
  EpochPlan(SeedPlan plan, std::vector<SeedList> lists, bool alike);

  SeedPlan plan_;
  std::vector<SeedList> lists_;  // empty: the split
  bool alike_;                   // the first list is every epoch's
};

// The seeds of `split` of a job per partition. NOT_FOUND lists the splits.
absl::StatusOr<std::vector<int64_t>> SplitPartCounts(const ResolvedJob& job,
                                                     const Manifest& manifest);

}  // namespace millrace
