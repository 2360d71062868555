// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/cuda/sample/row_words.cuh"

namespace millrace::cuda {

// The rows of an array: some are held, the others were received.
struct RowsToMerge {
  const std::byte* held = nullptr;
  // As many rows as the array has.
  const std::byte* received = nullptr;
  // The row of `held` for each of the array's rows; negative for the row of
  // `received` at the same position.
  const int64_t* places = nullptr;
  uint64_t count = 0;
  uint64_t row_bytes = 0;
};

// Copies the rows to `to`, one after another, in words that all rows are
// aligned for. Each row is copied by 2^thread_bits neighbouring threads.
template <typename Word>
__global__ void __launch_bounds__(kMaxBlock)
    MergeRows(RowsToMerge rows, unsigned thread_bits, Word* to) {
  const uint64_t row_words = rows.row_bytes / sizeof(Word);
  const uint64_t row_threads = uint64_t{1} << thread_bits;
  const uint64_t work = rows.count << thread_bits;
  const auto* held = reinterpret_cast<const Word*>(rows.held);
  const auto* received = reinterpret_cast<const Word*>(rows.received);
  for (uint64_t i = ThreadOfGrid(); i < work; i += ThreadsOfGrid()) {
    const uint64_t row = i >> thread_bits;
    const int64_t place = rows.places[row];
    const Word* from = place < 0
                           ? received + row * row_words
                           : held + static_cast<uint64_t>(place) * row_words;
    Word* to_row = to + row * row_words;
    for (uint64_t word = i & (row_threads - 1); word < row_words;
         word += row_threads) {
      to_row[word] = from[word];
    }
  }
}

}  // namespace millrace::cuda
