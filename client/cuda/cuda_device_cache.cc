// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/cuda_device_cache.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_memory.h"

namespace millrace::cuda {

absl::StatusOr<uint64_t> CudaDeviceCache::FreeBytes() {
  // What streams keep for later counts as free.
  TrimMemory(device());
  const absl::StatusOr<DeviceMemoryUse> use = MemoryUseOf(device());
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(use.status(), device()));
  return use->free_bytes;
}

absl::StatusOr<Array> CudaDeviceCache::Allocate(DType dtype,
                                                std::vector<int64_t> shape) {
  // An array knows its size.
  const Array sized = Array::Borrow(dtype, shape, nullptr, nullptr);
  absl::StatusOr<DeviceBlock> block =
      AllocateDevice(device(), sized.total_bytes(), "the feature cache");
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(block.status(), device()));
  const std::shared_ptr<const std::byte> rows = *std::move(block);
  return Array::Borrow(dtype, std::move(shape), rows.get(), rows, device());
}

absl::Status CudaDeviceCache::Write(const Array& rows, int64_t first,
                                    Array held) {
  MILLRACE_CHECK(rows.row_bytes() == held.row_bytes() && first >= 0 &&
                 first + rows.rows() <= held.rows());
  std::byte* to =
      held.mutable_data() + static_cast<uint64_t>(first) * held.row_bytes();
  MILLRACE_ASSIGN_OR_RETURN(
      const MergeOutcome outcome,
      workers_.Run<MergeOutcome>(
          [&](MergeWorker& worker) { return worker.Write(rows, to); }));
  if (outcome == MergeOutcome::kDone) return absl::OkStatus();
  return NoMemory(rows.total_bytes());
}

absl::StatusOr<Array> CudaDeviceCache::Merge(const Array& held,
                                             std::span<const int64_t> places,
                                             const Array& received) {
  MILLRACE_CHECK(held.row_bytes() == received.row_bytes() &&
                 static_cast<int64_t>(places.size()) == received.rows());
  std::shared_ptr<std::byte> merged;
  if (received.total_bytes() > 0) {
    MILLRACE_ASSIGN_OR_RETURN(
        const MergeOutcome outcome,
        workers_.Run<MergeOutcome>([&](MergeWorker& worker) {
          return worker.Merge(held.data(), places, received, *arrays_, merged);
        }));
    if (outcome == MergeOutcome::kNoMemory) {
      return NoMemory(received.total_bytes());
    }
  }
  return Array::Borrow(received.dtype(), received.shape(), merged.get(), merged,
                       device());
}

absl::Status CudaDeviceCache::NoMemory(uint64_t bytes) const {
  const absl::StatusOr<DeviceMemoryUse> use = MemoryUseOf(device());
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(use.status(), device()));
  return absl::ResourceExhaustedError(
      StrCat("the features of a batch take ", bytes, " bytes, but CUDA device ",
             device(), " has ", use->free_bytes, " of ", use->total_bytes,
             " bytes free\nkeep fewer feature rows in it, or use smaller "
             "batches"));
}

}  // namespace millrace::cuda
