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

bool LacksMemory(const absl::StatusOr<HopOutcome>& outcome) {
  return outcome.ok() && *outcome == HopOutcome::kNoMemory;
}

}  // namespace

DeviceWorkers::DeviceWorkers(int device)
    : device_(device),
      pinned_(PinnedPool::Create(device, kMaxIdlePinned)),
      gate_(DeviceGate::Of(device)),
      reclaimer_(gate_, [this] { DropIdle(); }) {}

absl::StatusOr<HopOutcome> DeviceWorkers::Run(Work work) {
  const ScopedDevice current(device_);
  MILLRACE_RETURN_IF_ERROR(current.status());
  absl::StatusOr<HopOutcome> outcome = HopOutcome::kNoMemory;
  const bool had_memory = gate_->Run([&] {
    outcome = RunOnce(work);
    return !LacksMemory(outcome);
  });
  if (had_memory) return outcome;
  return absl::FailedPreconditionError(
      StrCat("the batch does not fit into the memory of CUDA device ", device_,
             "\nuse a smaller batch size or fanouts"));
}

absl::StatusOr<HopOutcome> DeviceWorkers::RunOnce(Work work) {
  auto worker = Take();
  if (absl::IsResourceExhausted(worker.status())) return HopOutcome::kNoMemory;
  MILLRACE_RETURN_IF_ERROR(worker.status());
  const uint64_t waits = (*worker)->waits();
  absl::StatusOr<HopOutcome> outcome = work(**worker, *pinned_);
  waits_ += (*worker)->waits() - waits;
  // Others may need the memory of one that had too little.
  if (!(*worker)->failed() && !LacksMemory(outcome)) {
    const MutexLock lock(&mutex_);
    idle_.push_back(*std::move(worker));
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

void DeviceWorkers::DropIdle() {
  std::vector<std::unique_ptr<DeviceWorker>> dropped;
  const MutexLock lock(&mutex_);
  dropped.swap(idle_);
}

}  // namespace millrace::cuda
