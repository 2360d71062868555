// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
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

  int device() const { return device_; }
  // How often the host has waited for the device.
  uint64_t waits() const { return waits_; }

  // Has a worker do `work`, which may be called twice. If the device has too
  // little memory, waits until all other work has ended, and tries again alone.
  // The outcome is kMade or kTrouble.
  // FAILED_PRECONDITION: the work alone does not fit into the memory of the
  // device. UNAVAILABLE: the device has failed. Also fails as `work` does.
  absl::StatusOr<HopOutcome> Run(Work work);

 private:
  absl::StatusOr<HopOutcome> RunOnce(Work work);
  absl::StatusOr<std::unique_ptr<DeviceWorker>> Take();

  // While some work must be alone, no other starts.
  void StartShared();
  void EndShared();
  void StartAlone();
  void EndAlone();

  const int device_;
  const std::shared_ptr<PinnedPool> pinned_;
  std::atomic<uint64_t> waits_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<DeviceWorker>> idle_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // not counting work alone
  bool alone_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::cuda
