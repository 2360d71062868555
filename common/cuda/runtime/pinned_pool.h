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
  static constexpr uint64_t kMaxIdleBytes = uint64_t{1} << 30;

  // Keeps freed blocks as long as all that it keeps take at most
  // `max_idle_bytes`, or together with those in use no more than were in use at
  // once before. Gives up blocks of the size that was freed least recently for
  // those of others. Blocks are pinned by way of `device`, but every device may
  // use them. The device must be open.
  static std::shared_ptr<PinnedPool> Create(
      int device, uint64_t max_idle_bytes = kMaxIdleBytes);
  ~PinnedPool();

  // Uninitialised, aligned to 64 bytes. Freed, or kept, with the last copy of
  // the pointer. If the host does not have that much, frees what is kept first.
  // RESOURCE_EXHAUSTED: the host does not have that much. UNAVAILABLE: the
  // device does not work.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  // The size of the block that Allocate() takes: up to an eighth more, so that
  // batches of nearly the same size can reuse each other's blocks.
  static uint64_t BlockBytes(uint64_t bytes);

  uint64_t idle_bytes() const;

 private:
  // The blocks of a size that are kept (at least one).
  struct Kept {
    std::vector<std::byte*> blocks;
    uint64_t last_return = 0;  // as counted by returns_
  };

  PinnedPool(int device, uint64_t max_idle_bytes)
      : device_(device), max_idle_bytes_(max_idle_bytes) {}

  absl::StatusOr<std::byte*> Pin(uint64_t bytes) const;
  void Return(std::byte* block, uint64_t bytes);
  // Whether `bytes` more may be kept.
  bool MayKeep(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves a block of another size than `bytes` from those that are kept to
  // `given_up`; false if there is none.
  bool GiveUpOne(uint64_t bytes, std::vector<std::byte*>& given_up)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees all blocks that are kept.
  void DropIdle();
  void Unpin(std::byte* block) const;

  const int device_;
  const uint64_t max_idle_bytes_;
  mutable Mutex mutex_;
  // By size, which is one of BlockBytes().
  std::map<uint64_t, Kept> idle_ ABSL_GUARDED_BY(mutex_);
  uint64_t returns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t idle_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t most_used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace::cuda
