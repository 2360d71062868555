// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/sample/seeds/seed_schedule.h"

namespace millrace {

// Turns (epoch, batch) of a job into a request, whether its seeds come from a
// split or from the user's list. Immutable; any thread may use it.
class RequestPlan {
 public:
  // If given, `seeds` are used instead of the job's split.
  // NOT_FOUND: no such split; the message lists the splits. INVALID_ARGUMENT:
  // `seeds` with SeedOrder::kLocal.
  static absl::StatusOr<RequestPlan> Create(
      const ResolvedJob& job, const Manifest& manifest,
      std::optional<ExplicitSeeds> seeds = std::nullopt);
  // Takes a list for each epoch from 0 on, all of one size, instead of the
  // split.
  // INVALID_ARGUMENT: no list, lists of different sizes, or SeedOrder::kLocal.
  static absl::StatusOr<RequestPlan> OfLists(const ResolvedJob& job,
                                             std::vector<ExplicitSeeds> epochs);

  uint32_t batch_count() const { return schedule_.batch_count(); }
  int64_t seed_count() const { return schedule_.seed_count(); }
  // OUT_OF_RANGE: batch >= batch_count(), or an epoch without a list.
  absl::StatusOr<BatchRequest> Request(uint32_t epoch, uint32_t batch,
                                       const Columns& columns) const;

 private:
  RequestPlan(SeedSchedule schedule, std::vector<ExplicitSeeds> lists,
              bool same_list);

  SeedSchedule schedule_;
  std::vector<ExplicitSeeds> lists_;  // empty if seeds come from the split
  bool same_list_;                    // whether every epoch uses the first list
};

// The number of seeds of the job's split per partition. NOT_FOUND: no such
// split; the message lists the splits.
absl::StatusOr<std::vector<int64_t>> SplitPartCounts(const ResolvedJob& job,
                                                     const Manifest& manifest);

}  // namespace millrace
