// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/sample/device_workers.h"

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace::cuda {

DeviceWorkers::DeviceWorkers(int device)
    : pinned_(PinnedPool::Create(device)),
      arrays_(DevicePool::Of(device)),
      pool_(device) {}

absl::StatusOr<HopOutcome> DeviceWorkers::Run(Work work) {
  MILLRACE_ASSIGN_OR_RETURN(const HopOutcome outcome,
                            pool_.Run<HopOutcome>([&](DeviceWorker& worker) {
                              const uint64_t waits = worker.waits();
                              absl::StatusOr<HopOutcome> done =
                                  work(worker, *pinned_);
                              waits_ += worker.waits() - waits;
                              return done;
                            }));
  if (outcome != HopOutcome::kNoMemory) return outcome;
  const absl::StatusOr<DeviceMemoryUse> use = MemoryUseOf(pool_.device());
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(use.status(), pool_.device()));
  return absl::FailedPreconditionError(StrCat(
      "the batch does not fit into the memory of CUDA device ", pool_.device(),
      ", of which ", use->free_bytes, " of ", use->total_bytes,
      " bytes are free\nuse a smaller batch size or fanouts, or "
      "prefetch fewer batches"));
}

}  // namespace millrace::cuda
