// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_feature_rows.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/sample/row_worker.h"
#include "common/sample/gather.h"

namespace millrace::cuda {
namespace {

// Limit on pinned memory that is kept for later rows.
constexpr uint64_t kMaxIdlePinned = uint64_t{1} << 30;

}  // namespace

CudaFeatureRows::CudaFeatureRows(std::shared_ptr<const Store> store,
                                 std::unique_ptr<DeviceFeatures> features)
    : store_(std::move(store)),
      features_(std::move(features)),
      pinned_(PinnedPool::Create(features_->devices()[0], kMaxIdlePinned)),
      idle_(features_->devices().size()) {
  for (size_t place = 0; place < features_->devices().size(); ++place) {
    gates_.push_back(DeviceGate::Of(features_->devices()[place]));
    reclaimers_.push_back(std::make_unique<DeviceGate::Reclaimer>(
        gates_.back(), [this, place] { DropIdleWorkers(place); }));
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
  const size_t place = next_++ % features_->devices().size();
  const int device = features_->devices()[place];
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  absl::StatusOr<Outcome> outcome = Outcome::kNoMemory;
  const bool had_memory = gates_[place]->Run([&] {
    outcome = GatherOnDevice(place, request, out);
    return !outcome.ok() || *outcome != Outcome::kNoMemory;
  });
  if (!had_memory) {
    return absl::FailedPreconditionError(StrCat(
        "the numbers of ", request.rows.size(),
        " feature rows do not fit into the memory of CUDA device ", device,
        "\nkeep fewer feature rows in it, or use smaller batches"));
  }
  MILLRACE_RETURN_IF_ERROR(outcome.status());
  return *outcome == Outcome::kDone;
}

absl::StatusOr<CudaFeatureRows::Outcome> CudaFeatureRows::GatherOnDevice(
    size_t place, const Request& request, std::byte* out) {
  const FeatureColumns& columns = features_->columns(place);
  const FeatureColumn& column =
      (request.edges ? columns.edges : columns.nodes)[request.index];
  if (request.rows.empty() || column.row_bytes == 0) return Outcome::kForHost;
  MILLRACE_ASSIGN_OR_RETURN(const void* target, DevicePointer(out));
  absl::StatusOr<std::unique_ptr<RowWorker>> taken = TakeWorker(place);
  if (absl::IsResourceExhausted(taken.status())) return Outcome::kNoMemory;
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowWorker> worker,
                            std::move(taken));
  const GatherOutcome outcome =
      worker->Gather(column, request.parts, request.rows,
                     static_cast<std::byte*>(const_cast<void*>(target)));
  // A worker that has failed does nothing more, and one without memory keeps
  // none that others may need.
  switch (outcome) {
    case GatherOutcome::kFailed:
      return CudaStatus(
          worker->failure(),
          StrCat("CUDA device ", features_->devices()[place], " has failed"));
    case GatherOutcome::kNoMemory:
      return Outcome::kNoMemory;
    case GatherOutcome::kBadRow:
      ReturnWorker(place, std::move(worker));
      return Outcome::kForHost;
    case GatherOutcome::kDone:
      break;
  }
  const uint64_t on_device = worker->device_rows();
  device_rows_ += on_device;
  host_rows_ += request.rows.size() - on_device;
  ReturnWorker(place, std::move(worker));
  return Outcome::kDone;
}

absl::StatusOr<std::unique_ptr<RowWorker>> CudaFeatureRows::TakeWorker(
    size_t place) {
  {
    const MutexLock lock(&mutex_);
    std::vector<std::unique_ptr<RowWorker>>& idle = idle_[place];
    if (!idle.empty()) {
      std::unique_ptr<RowWorker> worker = std::move(idle.back());
      idle.pop_back();
      return worker;
    }
  }
  return RowWorker::Create(features_->devices()[place]);
}

void CudaFeatureRows::ReturnWorker(size_t place,
                                   std::unique_ptr<RowWorker> worker) {
  const MutexLock lock(&mutex_);
  idle_[place].push_back(std::move(worker));
}

void CudaFeatureRows::DropIdleWorkers(size_t place) {
  std::vector<std::unique_ptr<RowWorker>> dropped;
  const MutexLock lock(&mutex_);
  dropped.swap(idle_[place]);
}

}  // namespace millrace::cuda
