// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/array_memory.h"
#include "common/base/block.h"
#include "common/base/mutex.h"

namespace millrace::testing {

// Memory of the host that knows its blocks.
class KnownMemory final : public ArrayMemory {
 public:
  explicit KnownMemory(int device) : device_(device) {}

  std::shared_ptr<std::byte> Allocate(size_t bytes) override {
    std::shared_ptr<std::byte> block = AllocateBlock(bytes);
    std::byte* data = block.get();
    {
      MutexLock lock(&known_->mutex);
      known_->blocks[data] = bytes;
    }
    return std::shared_ptr<std::byte>(
        data, [block = std::move(block), known = known_](std::byte* freed) {
          MutexLock lock(&known->mutex);
          known->blocks.erase(freed);
        });
  }
  int device() const override { return device_; }

  // Number of blocks that have not been freed.
  size_t block_count() const {
    MutexLock lock(&known_->mutex);
    return known_->blocks.size();
  }
  // Whether `data` is in one of its blocks.
  bool Owns(const std::byte* data) const {
    MutexLock lock(&known_->mutex);
    const auto after = known_->blocks.upper_bound(data);
    if (after == known_->blocks.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return data < begin + bytes;
  }

 private:
  struct Known {
    Mutex mutex;
    std::map<const std::byte*, size_t> blocks ABSL_GUARDED_BY(mutex);
  };

  const int device_;
  const std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

}  // namespace millrace::testing
