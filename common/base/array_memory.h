// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

// The device of memory that the host reads and writes; GPUs count from 0.
inline constexpr int kHost = -1;

// Allocates memory of the host that one GPU copies quickly, for batches that
// this GPU will use. Threads: any.
class ArrayMemory {
 public:
  virtual ~ArrayMemory() = default;

  // Returns at least `bytes` bytes of uninitialised memory, 64-byte aligned.
  // The last copy of the pointer frees them, on any thread, also after this
  // object has been destroyed. Throws std::bad_alloc.
  virtual std::shared_ptr<std::byte> Allocate(size_t bytes) = 0;

  // That GPU, as CUDA counts those that the process sees. What a source makes
  // on it is left there.
  virtual int device() const = 0;
};

// The device of `memory`, or kHost if that is null.
inline int DeviceOf(const ArrayMemory* memory) {
  return memory == nullptr ? kHost : memory->device();
}

}  // namespace millrace
