// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace millrace::cuda {

// Blocks of pinned host memory, which devices copy to and from without a
// detour. Pinning is slow, so that freed blocks are kept for later ones.
// Thread-safe. Blocks may outlive the pool.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  // Keeps at most `max_idle_bytes` of freed blocks.
  static std::shared_ptr<PinnedPool> Create(uint64_t max_idle_bytes);
  ~PinnedPool();

  // Uninitialised, aligned to 64 bytes. Freed, or kept, with the last copy of
  // the pointer.
  // RESOURCE_EXHAUSTED: the host has not as much.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  uint64_t idle_bytes() const;

 private:
  explicit PinnedPool(uint64_t max_idle_bytes)
      : max_idle_bytes_(max_idle_bytes) {}

  void Return(std::byte* block, uint64_t bytes);

  const uint64_t max_idle_bytes_;
  mutable Mutex mutex_;
  // By size, which is a power of two.
  std::map<uint64_t, std::vector<std::byte*>> idle_ ABSL_GUARDED_BY(mutex_);
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace::cuda
