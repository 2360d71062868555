// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// An array to copy. Its elements have 4 or 8 bytes.
struct ArrayCopy {
  const void* from = nullptr;
  void* to = nullptr;
  const uint64_t* count = nullptr;  // null: 0
  uint64_t more = 0;                // elements besides *count
  bool wide = false;                // elements of `to` have 8 bytes
  bool narrowed = false;            // those of `from` have 8, of `to` 4

  __device__ uint64_t size() const {
    return (count == nullptr ? 0 : *count) + more;
  }
};

// So many that they fit into the parameters of a kernel.
struct ArrayCopies {
  static constexpr int kMax = 32;

  ArrayCopy copies[kMax];
  int count = 0;
};

__device__ inline void CopyArray(const ArrayCopy& copy) {
  const uint64_t size = copy.size();
  const auto* from_words = static_cast<const uint32_t*>(copy.from);
  const auto* from_wide = static_cast<const uint64_t*>(copy.from);
  for (uint64_t i = ThreadOfGrid(); i < size; i += ThreadsOfGrid()) {
    if (copy.wide) {
      static_cast<uint64_t*>(copy.to)[i] = from_wide[i];
    } else {
      static_cast<uint32_t*>(copy.to)[i] =
          copy.narrowed ? static_cast<uint32_t>(from_wide[i]) : from_words[i];
    }
  }
}

// Copies arrays whose sizes only the device knows. `to` may be in pinned
// memory.
__global__ void __launch_bounds__(kMaxBlock) CopyArrays(ArrayCopies copies) {
  for (int i = 0; i < copies.count; ++i) CopyArray(copies.copies[i]);
}

}  // namespace millrace::cuda
