// SPDX-License-Identifier: Apache-2.0
#include "common/tier/until_failure.h"

#include <string>

#include "common/base/log.h"
#include "common/base/status_lines.h"
#include "common/sample/gather_columns.h"

namespace millrace {

bool DeviceFailure::Note(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  if (!noted_.exchange(true)) {
    LogWarning(LogComponent::kStore,
               "a GPU has failed: from now on the CPU does its work",
               {{"error", FirstLine(status)}});
  }
  return true;
}

absl::StatusOr<std::optional<Batch>> SamplerUntilFailure::Sample(
    const Store& store, const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds, const Reserve& reserve) {
  if (failure_->noted()) return std::nullopt;
  auto batch = device_->Sample(store, job, request, seeds, reserve);
  if (failure_->Note(batch.status())) return std::nullopt;
  return batch;
}

absl::StatusOr<bool> DrawerUntilFailure::Draw(const Store& store, int part,
                                              const DrawContext& context,
                                              const Frontier& frontier,
                                              Picks& picks) {
  if (failure_->noted()) return false;
  auto drawn = device_->Draw(store, part, context, frontier, picks);
  if (failure_->Note(drawn.status())) return false;
  return drawn;
}

absl::StatusOr<Array> RowsUntilFailure::GatherNodes(
    TypeIndex type, std::span<const uint64_t> ids, ArrayMemory* memory) {
  if (!failure_->noted()) {
    auto gathered = device_->GatherNodes(type, ids, memory);
    if (!failure_->Note(gathered.status())) return gathered;
  }
  cpu_rows_ += ids.size();
  return GatherArray(*store_, type, NodeColumn::kFeature, ids,
                     {.memory = memory});
}

absl::StatusOr<Array> RowsUntilFailure::GatherEdges(
    RelationIndex relation, std::span<const uint32_t> parts,
    std::span<const uint64_t> rows, ArrayMemory* memory) {
  if (!failure_->noted()) {
    auto gathered = device_->GatherEdges(relation, parts, rows, memory);
    if (!failure_->Note(gathered.status())) return gathered;
  }
  cpu_rows_ += rows.size();
  return GatherEdgeArray(*store_, relation, parts, rows, {.memory = memory});
}

FeatureRowCounts RowsUntilFailure::counts() const {
  FeatureRowCounts counts = device_->counts();
  counts.cpu += cpu_rows_;
  return counts;
}

}  // namespace millrace
