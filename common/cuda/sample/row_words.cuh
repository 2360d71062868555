// SPDX-License-Identifier: Apache-2.0
// How kernels divide the rows that they copy.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// A word of the widest loads and stores.
struct alignas(16) WideWord {
  uint64_t low = 0, high = 0;
};

// Calls `function` with a word of the widest type for which all of `addresses`,
// addresses and sizes of rows or-ed together, are aligned.
template <typename Function>
void WithWidestWord(uint64_t addresses, const Function& function) {
  switch (addresses & -addresses) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    case 8:
      return function(uint64_t{});
    default:
      return function(WideWord{});
  }
}

// The binary logarithm of the number of threads that copy a row together: one
// for each word, but a warp at most.
inline unsigned RowThreadBits(uint64_t row_words) {
  return std::min<unsigned>(std::bit_width(row_words - 1),
                            std::bit_width(kWarp - 1));
}

}  // namespace millrace::cuda
