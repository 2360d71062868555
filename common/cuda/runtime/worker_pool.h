// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_gate.h"

namespace millrace::cuda {

// The workers of one device, as many as the most calls that ran at once. Each
// keeps memory of the device for its next work.
//
// A Worker has a function Create(int device), which returns
// absl::StatusOr<std::unique_ptr<Worker>>, and bool failed(), whether it does
// nothing any more.
// Threads: any.
template <typename Worker>
class WorkerPool {
 public:
  explicit WorkerPool(int device)
      : device_(device),
        gate_(DeviceGate::Of(device)),
        reclaimer_(gate_, [this] { DropIdle(); }) {}

  int device() const { return device_; }

  // Has a worker do `work`, with the device current. The work may be called
  // twice, since it shares the device's memory: see DeviceGate. The outcome is
  // kNoMemory if it does not fit into that memory alone.
  // RESOURCE_EXHAUSTED: other work has not ended in time. UNAVAILABLE: the
  // device has failed. Also fails as `work` does.
  template <typename Outcome>
  absl::StatusOr<Outcome> Run(
      absl::FunctionRef<absl::StatusOr<Outcome>(Worker&)> work) {
    const ScopedDevice current(device_);
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(current.status(), device_));
    absl::StatusOr<Outcome> outcome = Outcome::kNoMemory;
    const absl::StatusOr<bool> enough = gate_->Run([&] {
      outcome = RunOnce(work);
      return !LacksMemory(outcome);
    });
    MILLRACE_RETURN_IF_ERROR(enough.status());
    return outcome;
  }

 private:
  template <typename Outcome>
  static bool LacksMemory(const absl::StatusOr<Outcome>& outcome) {
    return outcome.ok() && *outcome == Outcome::kNoMemory;
  }

  template <typename Outcome>
  absl::StatusOr<Outcome> RunOnce(
      absl::FunctionRef<absl::StatusOr<Outcome>(Worker&)> work) {
    absl::StatusOr<std::unique_ptr<Worker>> worker = Take();
    if (absl::IsResourceExhausted(worker.status())) return Outcome::kNoMemory;
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(worker.status(), device_));
    absl::StatusOr<Outcome> outcome = work(**worker);
    // Others may need the memory of one that had too little.
    if (!(*worker)->failed() && !LacksMemory(outcome)) {
      const MutexLock lock(&mutex_);
      idle_.push_back(*std::move(worker));
    }
    return outcome;
  }

  absl::StatusOr<std::unique_ptr<Worker>> Take() {
    {
      const MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return Worker::Create(device_);
  }

  // Frees their memory.
  void DropIdle() {
    std::vector<std::unique_ptr<Worker>> dropped;
    const MutexLock lock(&mutex_);
    dropped.swap(idle_);
  }

  const int device_;
  const std::shared_ptr<DeviceGate> gate_;  // shared with others
  Mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_ ABSL_GUARDED_BY(mutex_);
  const DeviceGate::Reclaimer reclaimer_;  // last: uses the others
};

}  // namespace millrace::cuda
