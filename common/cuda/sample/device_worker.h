// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cuda/runtime/device_pool.h"
#include "common/cuda/runtime/pinned_pool.h"
#include "common/cuda/sample/hop_job.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/draw/seed_lists.h"
#include "common/sample/neighbor_source.h"

namespace millrace::cuda {

// A batch whose topology is to be made. All references must outlive the work.
struct TopologyWork {
  const HopJob& job;
  std::span<const SeedList> lists;
  std::span<const int64_t> times;  // of the seeds; empty unless temporal
  const Manifest& manifest;
  // Called with the size of pinned memory that the batch takes, before it is
  // allocated. May be null.
  const std::function<absl::Status(uint64_t)>& reserve;
  // Provides the memory of arrays that stay on the device; null if none do.
  DevicePool* stay = nullptr;
};

// Does one piece of work at a time on a stream of its own, and keeps the memory
// of the device that it took for the next. kFailed is never its outcome, but an
// error that CudaStatus() makes.
// Not thread-safe. The device must be the current one of the thread, except to
// destroy it.
class DeviceWorker {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceWorker>> Create(int device);
  ~DeviceWorker();

  // Adds the topology to `batch`, which has only its seeds; its arrays are in
  // one block of `pool`, and those of edges in one of work.stay. Also fails as
  // PinnedPool::Allocate() and work.reserve do.
  absl::StatusOr<HopOutcome> MakeTopology(const TopologyWork& work,
                                          PinnedPool& pool, Batch& batch);

  // Appends the picks of all nodes to `picks` if the outcome is kMade. Also
  // fails as PinnedPool::Allocate() does.
  absl::StatusOr<HopOutcome> Draw(const DrawJob& job, PinnedPool& pool,
                                  Picks& picks);

  // Whether it does nothing any more.
  bool failed() const;
  // How often the host has waited for the device.
  uint64_t waits() const;

 private:
  class State;
  explicit DeviceWorker(std::unique_ptr<State> state);

  absl::StatusOr<HopOutcome> Checked(absl::StatusOr<HopOutcome> outcome) const;

  const int device_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::cuda
