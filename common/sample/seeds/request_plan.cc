// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/request_plan.h"

#include <string>
#include <utility>

#include "common/base/field_error.h"
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

RequestPlan::RequestPlan(SeedSchedule schedule,
                         std::vector<ExplicitSeeds> lists, bool same_list)
    : schedule_(std::move(schedule)),
      lists_(std::move(lists)),
      same_list_(same_list) {}

absl::StatusOr<RequestPlan> RequestPlan::Create(
    const ResolvedJob& job, const Manifest& manifest,
    std::optional<ExplicitSeeds> seeds) {
  if (seeds.has_value()) {
    std::vector<ExplicitSeeds> lists;
    lists.push_back(*std::move(seeds));
    MILLRACE_ASSIGN_OR_RETURN(RequestPlan plan, OfLists(job, std::move(lists)));
    plan.same_list_ = true;
    return plan;
  }
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> part_counts,
                            SplitPartCounts(job, manifest));
  return RequestPlan(SeedSchedule(job.spec, std::move(part_counts)), {}, true);
}

absl::StatusOr<RequestPlan> RequestPlan::OfLists(
    const ResolvedJob& job, std::vector<ExplicitSeeds> epochs) {
  if (job.spec.seed_order == SeedOrder::kLocal) {
    return InvalidField({.field = "seed_order",
                         .value = "local",
                         .limit = "needs a split, not a list of seeds"});
  }
  if (epochs.empty()) {
    return absl::InvalidArgumentError("there is no list of seeds");
  }
  const size_t size = epochs[0].size();
  for (const ExplicitSeeds& list : epochs) {
    if (list.size() == size) continue;
    return absl::InvalidArgumentError(
        StrCat("the epochs' lists have ", size, " and ", list.size(),
               " seeds; they must all have the same number"));
  }
  return RequestPlan(SeedSchedule(job.spec, {static_cast<int64_t>(size)}),
                     std::move(epochs), false);
}

absl::StatusOr<BatchRequest> RequestPlan::Request(
    uint32_t epoch, uint32_t batch, const Columns& columns) const {
  BatchRequest request{.epoch = epoch,
                       .batch = batch,
                       .explicit_seeds = std::nullopt,
                       .columns = columns};
  const bool listed = !lists_.empty();
  if (listed && !same_list_ && epoch >= lists_.size()) {
    return absl::OutOfRangeError(StrCat("epoch ", epoch, " has no list: only ",
                                        lists_.size(), " epochs have one"));
  }
  if (listed || batch >= schedule_.batch_count()) {
    MILLRACE_ASSIGN_OR_RETURN(const SeedSchedule::BatchPositions where,
                              schedule_.Positions(epoch, batch));
    request.explicit_seeds = lists_[same_list_ ? 0 : epoch].At(where.positions);
  }
  return request;
}

}  // namespace millrace
