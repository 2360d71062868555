// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// A column of rows, as words that all are aligned for.
template <typename Word>
struct RowColumn {
  const Word* words = nullptr;
  uint64_t rows = 0;
  uint64_t row_words = 0;
};

// Copies the rows `rows` of a column, one after another. A thread for each
// word. Rows beyond the column become zeros.
template <typename Word>
__global__ void __launch_bounds__(kMaxBlock)
    GatherRows(RowColumn<Word> from, const uint64_t* rows, uint64_t count,
               Word* to, uint32_t* trouble) {
  const uint64_t words = count * from.row_words;
  for (uint64_t i = ThreadOfGrid(); i < words; i += ThreadsOfGrid()) {
    const uint64_t row = rows[i / from.row_words];
    if (row >= from.rows) {
      Report(trouble, kBadRow);
      to[i] = Word{};
      continue;
    }
    to[i] = from.words[row * from.row_words + i % from.row_words];
  }
}

}  // namespace millrace::cuda
