// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cuda/merge_worker.h"
#include "client/remote/device_cache.h"
#include "common/base/array.h"
#include "common/cuda/runtime/device_pool.h"
#include "common/cuda/runtime/worker_pool.h"

namespace millrace::cuda {

// Keeps feature rows on a CUDA device. Kernels read received rows in pinned
// memory over the bus; others are copied to the device first.
class CudaDeviceCache final : public DeviceCache {
 public:
  // The device must be open.
  explicit CudaDeviceCache(int device)
      : arrays_(DevicePool::Of(device)), workers_(device) {}

  int device() const override { return workers_.device(); }
  absl::StatusOr<uint64_t> FreeBytes() override;
  absl::StatusOr<Array> Allocate(DType dtype,
                                 std::vector<int64_t> shape) override;
  absl::Status Write(const Array& rows, int64_t first, Array held) override;
  absl::StatusOr<Array> Merge(const Array& held,
                              std::span<const int64_t> places,
                              const Array& received) override;

 private:
  // RESOURCE_EXHAUSTED: the features of a batch do not fit.
  absl::Status NoMemory(uint64_t bytes) const;

  const std::shared_ptr<DevicePool> arrays_;  // for the features of batches
  WorkerPool<MergeWorker> workers_;
};

}  // namespace millrace::cuda
