// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/device_workers.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {
namespace {

// Limit on pinned memory that is kept for later work.
constexpr uint64_t kMaxIdlePinned = uint64_t{1} << 30;

}  // namespace

DeviceWorkers::DeviceWorkers(int device)
    : device_(device), pinned_(PinnedPool::Create(device, kMaxIdlePinned)) {}

absl::StatusOr<HopOutcome> DeviceWorkers::Run(Work work) {
  const ScopedDevice current(device_);
  MILLRACE_RETURN_IF_ERROR(current.status());
  StartShared();
  absl::StatusOr<HopOutcome> outcome = RunOnce(work);
  EndShared();
  if (!outcome.ok() || *outcome != HopOutcome::kNoMemory) return outcome;
  StartAlone();
  outcome = RunOnce(work);
  EndAlone();
  if (!outcome.ok() || *outcome != HopOutcome::kNoMemory) return outcome;
  return absl::FailedPreconditionError(
      StrCat("the batch does not fit into the memory of CUDA device ", device_,
             "\nuse a smaller batch size or fanouts"));
}

absl::StatusOr<HopOutcome> DeviceWorkers::RunOnce(Work work) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<DeviceWorker> worker, Take());
  const uint64_t waits = worker->waits();
  absl::StatusOr<HopOutcome> outcome = work(*worker, *pinned_);
  waits_ += worker->waits() - waits;
  // Others may need the memory of one that had too little.
  if (!worker->failed() &&
      !(outcome.ok() && *outcome == HopOutcome::kNoMemory)) {
    const MutexLock lock(&mutex_);
    idle_.push_back(std::move(worker));
  }
  return outcome;
}

absl::StatusOr<std::unique_ptr<DeviceWorker>> DeviceWorkers::Take() {
  {
    const MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<DeviceWorker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return DeviceWorker::Create(device_);
}

void DeviceWorkers::StartShared() {
  const MutexLock lock(&mutex_);
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !alone_;
  });
  ++running_;
}

void DeviceWorkers::EndShared() {
  const MutexLock lock(&mutex_);
  --running_;
  changed_.NotifyAll();
}

void DeviceWorkers::StartAlone() {
  std::vector<std::unique_ptr<DeviceWorker>> dropped;
  const MutexLock lock(&mutex_);
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !alone_;
  });
  alone_ = true;
  changed_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ == 0;
  });
  dropped.swap(idle_);
}

void DeviceWorkers::EndAlone() {
  const MutexLock lock(&mutex_);
  alone_ = false;
  changed_.NotifyAll();
}

}  // namespace millrace::cuda
