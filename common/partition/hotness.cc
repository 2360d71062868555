// SPDX-License-Identifier: Apache-2.0
#include "common/partition/hotness.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/partition/list_scan.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/request_plan.h"

namespace millrace {
namespace {

using Counts = std::vector<std::vector<uint64_t>>;

Counts ZeroCounts(const Schema& schema) {
  Counts counts;
  for (const NodeType& type : schema.node_types) {
    counts.emplace_back(static_cast<size_t>(type.count), 0);
  }
  return counts;
}

void CountVisits(const Batch& batch, Counts& visits) {
  for (size_t type = 0; type < batch.nodes.size(); ++type) {
    const Array& ids = batch.nodes[type].id;
    for (int64_t i = 0; i < ids.rows(); ++i) {
      ++visits[type][static_cast<size_t>(ids.IntegerAt(i))];
    }
  }
}

// Stays below 1 even when it is added in single precision to a count below
// 2^20.
float TieBreak(float degree, float largest) {
  return largest > 0 ? 0.9375F * (degree / largest) : 0;
}

Hotness AddTieBreak(const Counts& visits, const Hotness& degrees) {
  float largest = 0;
  for (const auto& type : degrees) {
    for (const float degree : type) largest = std::max(largest, degree);
  }
  Hotness hotness;
  for (size_t type = 0; type < visits.size(); ++type) {
    auto& values = hotness.emplace_back(visits[type].size());
    for (size_t node = 0; node < values.size(); ++node) {
      values[node] = static_cast<float>(visits[type][node]) +
                     TieBreak(degrees[type][node], largest);
    }
  }
  return hotness;
}

}  // namespace

absl::StatusOr<Hotness> DegreeHotness(
    const Store& dataset, const std::vector<Direction>& directions) {
  Counts counts = ZeroCounts(dataset.schema());
  for (const Direction direction : directions) {
    for (size_t i = 0; i < dataset.schema().relations.size(); ++i) {
      const DatasetLists lists =
          FindLists(dataset, static_cast<RelationIndex>(i), direction);
      std::vector<uint64_t>& occurrences = counts[lists.neighbor_type];
      MILLRACE_RETURN_IF_ERROR(
          ScanLists(lists, [&occurrences](size_t, auto neighbors) {
            for (const auto neighbor : neighbors) ++occurrences[neighbor];
          }));
    }
  }
  Hotness hotness;
  for (const auto& type : counts)
    hotness.emplace_back(type.begin(), type.end());
  return hotness;
}

absl::StatusOr<Hotness> PresampleHotness(
    const std::shared_ptr<const Store>& dataset, const JobSpec& job,
    uint32_t max_batches, const Hotness& degrees) {
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob resolved,
                            ResolveJob(job, dataset->manifest()));
  MILLRACE_ASSIGN_OR_RETURN(const RequestPlan plan,
                            RequestPlan::Create(resolved, dataset->manifest()));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<LocalBatchSource> source,
                            LocalBatchSource::Create(dataset, 1));
  const uint32_t batches = std::min(plan.batch_count(), max_batches);
  Columns topology;
  topology.features = false;
  topology.labels = LabelRows::kNone;
  Counts visits = ZeroCounts(dataset->schema());
  Progress progress("presample", batches, "batches");
  for (uint32_t index = 0; index < batches; ++index) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const BatchRequest request,
                              plan.Request(0, index, topology));
    MILLRACE_ASSIGN_OR_RETURN(const Batch batch,
                              source->Make(resolved, request));
    CountVisits(batch, visits);
    progress.Add(1);
  }
  progress.Finish();
  return AddTieBreak(visits, degrees);
}

}  // namespace millrace
