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

// Blocks of memory that are slow to make, so that freed ones are kept for later
// ones. Thread-safe. Blocks may outlive the owner's pointer to the pool.
//
// A class of its own for each kind of memory makes and frees blocks, and calls
// DropIdle() when it is destroyed.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  virtual ~BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Uninitialised, aligned to 64 bytes. Freed, or kept, with the last copy of
  // the pointer, on any thread. If there is not that much, frees what is kept
  // first.
  // RESOURCE_EXHAUSTED: there is not that much. UNAVAILABLE: the device does
  // not work.
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes);

  // The size of the block that Allocate() takes: up to an eighth more, so that
  // batches of nearly the same size can reuse each other's blocks.
  static uint64_t BlockBytes(uint64_t bytes);

  uint64_t idle_bytes() const;
  // Frees all blocks that are kept.
  void DropIdle();

 protected:
  // Keeps freed blocks as long as all that it keeps take at most
  // `max_idle_bytes`, or together with those in use no more than were in use at
  // once before. Gives up blocks of the size that was freed least recently for
  // those of others.
  explicit BlockPool(uint64_t max_idle_bytes)
      : max_idle_bytes_(max_idle_bytes) {}

 private:
  // The blocks of a size that are kept (at least one).
  struct Kept {
    std::vector<std::byte*> blocks;
    uint64_t last_return = 0;  // as counted by returns_
  };

  // Make a block of one of the sizes of BlockBytes(), and free it. Any thread.
  virtual absl::StatusOr<std::byte*> Make(uint64_t bytes) const = 0;
  virtual void Free(std::byte* block) const = 0;

  // Returns a block that is kept, or null.
  std::byte* TakeKept(uint64_t bytes);
  void Return(std::byte* block, uint64_t bytes);
  // Whether `bytes` more may be kept.
  bool MayKeep(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves a block of another size than `bytes` from those that are kept to
  // `given_up`; false if there is none.
  bool GiveUpOne(uint64_t bytes, std::vector<std::byte*>& given_up)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
