// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cuda/runtime/device_gate.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/cuda/sample/device_worker.h"

namespace millrace::cuda {

// The workers of one device, as many as the most calls that ran at once.
// Threads: any.
class DeviceWorkers {
 public:
  using Work =
      absl::FunctionRef<absl::StatusOr<HopOutcome>(DeviceWorker&, PinnedPool&)>;

  // The device must be open.
  explicit DeviceWorkers(int device);

  // How often the host has waited for the device.
  uint64_t waits() const { return waits_; }

  // Has a worker do `work`, which may be called twice: see DeviceGate. The
  // outcome is kMade or kTrouble.
  // FAILED_PRECONDITION: the work alone does not fit into the memory of the
  // device. UNAVAILABLE: the device has failed. Also fails as `work` does.
  absl::StatusOr<HopOutcome> Run(Work work);

 private:
  absl::StatusOr<HopOutcome> RunOnce(Work work);
  absl::StatusOr<std::unique_ptr<DeviceWorker>> Take();
  // Frees their memory.
  void DropIdle();

  const int device_;
  const std::shared_ptr<PinnedPool> pinned_;
  const std::shared_ptr<DeviceGate> gate_;  // shared with others
  std::atomic<uint64_t> waits_ = 0;
  Mutex mutex_;
  std::vector<std::unique_ptr<DeviceWorker>> idle_ ABSL_GUARDED_BY(mutex_);
  const DeviceGate::Reclaimer reclaimer_;  // last: uses the others
};

}  // namespace millrace::cuda
