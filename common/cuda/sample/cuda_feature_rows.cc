// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/cuda_feature_rows.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_pool.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/runtime/worker_pool.h"
#include "common/cuda/sample/row_worker.h"
#include "common/sample/gather_columns.h"

namespace millrace::cuda {
namespace {

// Where kernels find a block of the current device, or a pinned one.
absl::StatusOr<std::byte*> TargetOf(std::byte* block, bool on_device) {
  if (on_device) return block;
  MILLRACE_ASSIGN_OR_RETURN(const void* pinned, DevicePointer(block));
  return static_cast<std::byte*>(const_cast<void*>(pinned));
}

// The error of a list of `rows` numbers, and the `bytes` bytes of the rows that
// are to stay on the device.
absl::Status DoesNotFit(size_t rows, uint64_t bytes, int device) {
  const absl::StatusOr<DeviceMemoryUse> use = MemoryUseOf(device);
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(use.status(), device));
  const std::string what =
      bytes == 0 ? StrCat("the list of ", rows, " feature rows to gather does")
                 : StrCat("the ", bytes, " bytes of ", rows,
                          " feature rows, and the list of them, do");
  return absl::FailedPreconditionError(
      StrCat(what, " not fit into the memory of CUDA device ", device,
             ", of which ", use->free_bytes, " of ", use->total_bytes,
             " bytes are free\nkeep fewer feature rows in it, or use smaller "
             "batches",
             bytes == 0 ? "" : ", or prefetch fewer of them"));
}

}  // namespace

// A device that reads rows.
struct CudaFeatureRows::Reader {
  explicit Reader(int device)
      : workers(device), arrays(DevicePool::Of(device)) {}

  WorkerPool<RowWorker> workers;
  const std::shared_ptr<DevicePool> arrays;
};

CudaFeatureRows::CudaFeatureRows(std::shared_ptr<const Store> store,
                                 std::unique_ptr<DeviceFeatures> features)
    : store_(std::move(store)),
      features_(std::move(features)),
      pinned_(PinnedPool::Create(features_->devices()[0])) {
  for (const int device : features_->devices()) {
    readers_.push_back(std::make_unique<Reader>(device));
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

absl::StatusOr<Array> CudaFeatureRows::GatherNodes(
    TypeIndex type, std::span<const uint64_t> ids, ArrayMemory* memory) {
  MILLRACE_ASSIGN_OR_RETURN(
      std::optional<Array> gathered,
      Gather({.index = type, .rows = ids, .device = DeviceOf(memory)}));
  if (gathered.has_value()) return *std::move(gathered);
  return GatherArray(*store_, type, NodeColumn::kFeature, ids,
                     {.memory = memory});
}

absl::StatusOr<Array> CudaFeatureRows::GatherEdges(
    RelationIndex relation, std::span<const uint32_t> parts,
    std::span<const uint64_t> rows, ArrayMemory* memory) {
  MILLRACE_CHECK(parts.size() == rows.size());
  MILLRACE_ASSIGN_OR_RETURN(std::optional<Array> gathered,
                            Gather({.edges = true,
                                    .index = relation,
                                    .parts = parts,
                                    .rows = rows,
                                    .device = DeviceOf(memory)}));
  if (gathered.has_value()) return *std::move(gathered);
  return GatherEdgeArray(*store_, relation, parts, rows, {.memory = memory});
}

size_t CudaFeatureRows::PlaceFor(int device) {
  const std::vector<int>& devices = features_->devices();
  const auto found = std::ranges::find(devices, device);
  if (found == devices.end()) return next_++ % devices.size();
  return static_cast<size_t>(found - devices.begin());
}

const ColumnSpec& CudaFeatureRows::SpecOf(const Request& request) const {
  const Schema& schema = store_->schema();
  return request.edges ? schema.relations[request.index].feature
                       : schema.node_types[request.index].feature;
}

absl::StatusOr<std::optional<Array>> CudaFeatureRows::Gather(
    const Request& request) {
  const size_t place = PlaceFor(request.device);
  const FeatureColumns& columns = features_->columns(place);
  const FeatureColumn& column =
      (request.edges ? columns.edges : columns.nodes)[request.index];
  const size_t count = request.rows.size();
  if (count == 0 || column.row_bytes == 0) return std::nullopt;
  Reader& reader = *readers_[place];
  const int device = reader.workers.device();
  const bool stays = device == request.device;
  const uint64_t bytes = count * column.row_bytes;
  std::shared_ptr<std::byte> block;
  if (!stays) {
    MILLRACE_ASSIGN_OR_RETURN(block, pinned_->Allocate(bytes));
  }
  uint64_t on_device = 0;
  const auto gather = [&](RowWorker& worker) -> absl::StatusOr<GatherOutcome> {
    if (stays) {
      MILLRACE_ASSIGN_OR_RETURN(block, reader.arrays->AllocateIfRoom(bytes));
      if (block == nullptr) return GatherOutcome::kNoMemory;
    }
    const absl::StatusOr<std::byte*> target = TargetOf(block.get(), stays);
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(target.status(), device));
    MILLRACE_ASSIGN_OR_RETURN(
        const GatherOutcome outcome,
        worker.Gather(column, request.parts, request.rows, *target));
    on_device = worker.device_rows();
    // Others may need the memory.
    if (stays && outcome == GatherOutcome::kNoMemory) block = nullptr;
    return outcome;
  };
  MILLRACE_ASSIGN_OR_RETURN(const GatherOutcome outcome,
                            reader.workers.Run<GatherOutcome>(gather));
  if (outcome == GatherOutcome::kNoMemory) {
    return DoesNotFit(count, stays ? bytes : 0, device);
  }
  if (outcome == GatherOutcome::kBadRow) return std::nullopt;
  gpu_rows_ += on_device;
  pinned_rows_ += count - on_device;
  const ColumnSpec& spec = SpecOf(request);
  return Array::Borrow(spec.dtype, spec.ShapeOf(static_cast<int64_t>(count)),
                       block.get(), block, stays ? device : kHost);
}

}  // namespace millrace::cuda
