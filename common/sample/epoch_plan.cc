// SPDX-License-Identifier: Apache-2.0
#include "common/sample/epoch_plan.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<std::vector<int64_t>> SplitPartCounts(const ResolvedJob& job,
                                                     const Manifest& manifest) {
  if (job.seed_relation >= 0) {
    MILLRACE_ASSIGN_OR_RETURN(
        const size_t index,
        manifest.FindEdgeSplit(job.seed_relation, job.spec.split));
    return manifest.edge_splits[index].part_counts;
  }
  MILLRACE_ASSIGN_OR_RETURN(const size_t index,
                            manifest.FindSplit(job.seed_type, job.spec.split));
  return manifest.splits[index].part_counts;
}

EpochPlan::EpochPlan(SeedPlan plan, std::optional<SeedList> seeds)
    : plan_(std::move(plan)), seeds_(std::move(seeds)) {}

absl::StatusOr<EpochPlan> EpochPlan::Create(const ResolvedJob& job,
                                            const Manifest& manifest,
                                            std::optional<SeedList> seeds) {
  std::vector<int64_t> part_counts;
  if (!seeds.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(part_counts, SplitPartCounts(job, manifest));
  } else if (job.spec.seed_order == SeedOrder::kLocal) {
    return absl::InvalidArgumentError(
        "--seed-order local needs a split, not a list of seeds\n"
        "make one with `millrace split`, or use --seed-order global");
  } else {
    part_counts = {static_cast<int64_t>(seeds->size())};
  }
  return EpochPlan(SeedPlan(job.spec, std::move(part_counts)),
                   std::move(seeds));
}

absl::StatusOr<BatchRequest> EpochPlan::Request(uint32_t epoch, uint32_t batch,
                                                const Columns& columns) const {
  BatchRequest request{.epoch = epoch,
                       .batch = batch,
                       .explicit_seeds = std::nullopt,
                       .columns = columns};
  if (seeds_.has_value() || batch >= plan_.batch_count()) {
    MILLRACE_ASSIGN_OR_RETURN(const SeedPlan::BatchPositions where,
                              plan_.Positions(epoch, batch));
    request.explicit_seeds = seeds_->At(where.positions);
  }
  return request;
}

}  // namespace millrace
