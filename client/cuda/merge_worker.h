// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/cuda/runtime/device_pool.h"

namespace millrace::cuda {

enum class MergeOutcome : uint8_t {
  kDone,
  kNoMemory,  // the device does not have enough
};

// Does the work of CudaDeviceCache on a stream of one device. See WorkerPool.
// Not thread-safe. The device must be the current one of the thread, except to
// destroy it. After each call, nothing that it was given is used any more.
class MergeWorker {
 public:
  // Fails like CudaStatus().
  static absl::StatusOr<std::unique_ptr<MergeWorker>> Create(int device);
  ~MergeWorker();

  // Copies `rows` from the host to `to` in the device's memory. UNAVAILABLE:
  // the device has failed.
  absl::StatusOr<MergeOutcome> Write(const Array& rows, std::byte* to);

  // See DeviceCache::Merge(). The result, which has as many bytes as
  // `received`, is written to a block of `pool`, to which `merged` is set.
  // UNAVAILABLE: the device has failed.
  absl::StatusOr<MergeOutcome> Merge(const std::byte* held,
                                     std::span<const int64_t> places,
                                     const Array& received, DevicePool& pool,
                                     std::shared_ptr<std::byte>& merged);

  // Whether it does nothing any more.
  bool failed() const;

 private:
  struct State;
  MergeWorker(int device, std::unique_ptr<State> state);
  absl::StatusOr<MergeOutcome> AfterFailure() const;

  const int device_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::cuda
