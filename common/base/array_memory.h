// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

// The device of memory that the host reads and writes; GPUs count from 0.
inline constexpr int kHost = -1;

// Where the arrays of batches go that are on their way to a GPU. Threads: any.
class ArrayMemory {
 public:
  virtual ~ArrayMemory() = default;

  // Returns at least `bytes` bytes of uninitialised memory of the host, 64-byte
  // aligned, that the GPU copies without a detour. The last copy of the pointer
  // frees them, on any thread, also after this object has been destroyed.
  // Throws std::bad_alloc.
  virtual std::shared_ptr<std::byte> Allocate(size_t bytes) = 0;

  // The GPU, as CUDA counts those that the process sees. What is made there
  // stays there.
  virtual int device() const = 0;
};

}  // namespace millrace
