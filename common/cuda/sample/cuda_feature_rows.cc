// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_feature_rows.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/sample/row_worker.h"
#include "common/sample/gather.h"

namespace millrace::cuda {

CudaFeatureRows::CudaFeatureRows(std::shared_ptr<const Store> store,
                                 std::unique_ptr<DeviceFeatures> features)
    : store_(std::move(store)),
      features_(std::move(features)),
      pinned_(PinnedPool::Create(features_->devices()[0])) {
  for (const int device : features_->devices()) {
    pools_.push_back(std::make_unique<WorkerPool<RowWorker>>(device));
  }
}

CudaFeatureRows::~CudaFeatureRows() = default;

absl::StatusOr<std::unique_ptr<CudaFeatureRows>> CudaFeatureRows::Create(
    std::shared_ptr<const Store> store, const std::vector<int>& devices,
    double ratio) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<DeviceFeatures> features,
                            DeviceFeatures::Create(*store, devices, ratio));
  return std::unique_ptr<CudaFeatureRows>(
      new CudaFeatureRows(std::move(store), std::move(features)));
}

absl::StatusOr<std::shared_ptr<std::byte>> CudaFeatureRows::Allocate(
    uint64_t bytes) {
  return pinned_->Allocate(bytes);
}

absl::Status CudaFeatureRows::GatherNodes(TypeIndex type,
                                          std::span<const uint64_t> ids,
                                          std::byte* out) {
  const Request request = {.edges = false, .index = type, .rows = ids};
  MILLRACE_ASSIGN_OR_RETURN(const bool gathered, Gather(request, out));
  if (gathered) return absl::OkStatus();
  return GatherRows(*store_, type, NodeColumn::kFeature, ids, out);
}

absl::Status CudaFeatureRows::GatherEdges(RelationIndex relation,
                                          std::span<const uint32_t> parts,
                                          std::span<const uint64_t> rows,
                                          std::byte* out) {
  MILLRACE_CHECK(parts.size() == rows.size());
  const Request request = {
      .edges = true, .index = relation, .parts = parts, .rows = rows};
  MILLRACE_ASSIGN_OR_RETURN(const bool gathered, Gather(request, out));
  if (gathered) return absl::OkStatus();
  return GatherEdgeRows(*store_, relation, parts, rows, out);
}

absl::StatusOr<bool> CudaFeatureRows::Gather(const Request& request,
                                             std::byte* out) {
  const size_t place = next_++ % pools_.size();
  WorkerPool<RowWorker>& pool = *pools_[place];
  const FeatureColumns& columns = features_->columns(place);
  const FeatureColumn& column =
      (request.edges ? columns.edges : columns.nodes)[request.index];
  if (request.rows.empty() || column.row_bytes == 0) return false;
  uint64_t on_device = 0;
  const auto gather = [&](RowWorker& worker) -> absl::StatusOr<GatherOutcome> {
    const absl::StatusOr<const void*> target = DevicePointer(out);
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(target.status(), pool.device()));
    absl::StatusOr<GatherOutcome> gathered =
        worker.Gather(column, request.parts, request.rows,
                      static_cast<std::byte*>(const_cast<void*>(*target)));
    on_device = worker.device_rows();
    return gathered;
  };
  MILLRACE_ASSIGN_OR_RETURN(const GatherOutcome outcome,
                            pool.Run<GatherOutcome>(gather));
  switch (outcome) {
    case GatherOutcome::kNoMemory:
      return absl::FailedPreconditionError(
          StrCat("the list of ", request.rows.size(),
                 " feature rows to gather does not fit into the memory of CUDA "
                 "device ",
                 pool.device(),
                 "\nkeep fewer feature rows in it, or use smaller batches"));
    case GatherOutcome::kBadRow:
      return false;
    case GatherOutcome::kDone:
      break;
  }
  gpu_rows_ += on_device;
  pinned_rows_ += request.rows.size() - on_device;
  return true;
}

}  // namespace millrace::cuda
