// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "absl/base/call_once.h"
#include "common/base/array_memory.h"
#include "common/cuda/runtime/pinned_pool.h"

namespace millrace::cuda {

// Pinned memory for batches on their way to a device. What cannot be pinned is
// in ordinary memory, which takes the device longer to copy; the first time is
// logged.
class PinnedMemory final : public ArrayMemory {
 public:
  // Smaller arrays are in ordinary memory: copying them costs less than pinning
  // a page for each.
  static constexpr size_t kMinPinnedBytes = size_t{16} << 10;

  // The device must be open.
  explicit PinnedMemory(int device)
      : device_(device), pool_(PinnedPool::Create(device)) {}

  std::shared_ptr<std::byte> Allocate(size_t bytes) override;
  int device() const override { return device_; }

 private:
  const int device_;
  const std::shared_ptr<PinnedPool> pool_;
  absl::once_flag logged_;
};

}  // namespace millrace::cuda
