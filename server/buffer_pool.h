// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

// Buffers of one size, 64-byte aligned, that are used again and again: fresh
// memory of a frame's size costs as much in page faults as the copy into it.
// Threads: any. Buffers may outlive the pool.
class BufferPool {
 public:
  // Keeps at most `kept` unused buffers.
  BufferPool(size_t buffer_bytes, size_t kept);

  // Uninitialised; returns to the pool when the last copy of the pointer goes
  // (shared by the frame and gRPC, which lets go of it on its own threads).
  std::shared_ptr<std::byte> Take();

  size_t buffer_bytes() const { return buffer_bytes_; }

 private:
  struct Shelf {
    ~Shelf();
    absl::Mutex mutex;
    std::vector<std::byte*> unused ABSL_GUARDED_BY(mutex);
  };

  const size_t buffer_bytes_;
  const size_t kept_;
  const std::shared_ptr<Shelf> shelf_;  // shared with all buffers out
};

}  // namespace millrace
