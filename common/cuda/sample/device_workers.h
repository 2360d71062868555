// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/cuda/runtime/device_pool.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/cuda/runtime/worker_pool.h"
#include "common/cuda/sample/device_worker.h"

namespace millrace::cuda {

// Samples on one device.
// Threads: any.
class DeviceWorkers {
 public:
  using Work =
      absl::FunctionRef<absl::StatusOr<HopOutcome>(DeviceWorker&, PinnedPool&)>;

  // The device must be open.
  explicit DeviceWorkers(int device);

  // How often the host has waited for the device.
  uint64_t waits() const { return waits_; }
  // Provides the memory of arrays that stay on the device.
  DevicePool& arrays() const { return *arrays_; }

  // Has a worker do `work`, which may be called twice: see WorkerPool. The
  // outcome is kMade or kTrouble.
  // FAILED_PRECONDITION: the work alone does not fit into the memory of the
  // device. UNAVAILABLE: the device has failed. Also fails as `work` does.
  absl::StatusOr<HopOutcome> Run(Work work);

 private:
  const std::shared_ptr<PinnedPool> pinned_;
  const std::shared_ptr<DevicePool> arrays_;
  std::atomic<uint64_t> waits_ = 0;
  WorkerPool<DeviceWorker> pool_;
};

}  // namespace millrace::cuda
