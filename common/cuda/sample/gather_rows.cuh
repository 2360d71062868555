// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/cuda/graph/feature_column.h"
#include "common/cuda/sample/kernel.cuh"
#include "common/cuda/sample/row_words.cuh"

namespace millrace::cuda {

// Which rows to gather.
struct WantedRows {
  // The partition of each row; null if rows are ids of nodes.
  const uint32_t* parts = nullptr;
  const uint64_t* rows = nullptr;
  uint64_t count = 0;
};

// The result of a gather, which kernels write to the device's memory.
struct RowTally {
  uint32_t trouble = 0;
  uint32_t device_rows = 0;  // rows read from devices' memory
};

// Where a row is.
struct RowPlace {
  const std::byte* data = nullptr;  // null if there is no such row
  bool on_device = false;
};

// The last partition that begins at `id` or before it. Partitions without nodes
// come before the one that begins at the same id.
__device__ inline uint32_t PartOfNode(const FeatureColumn& column,
                                      uint64_t id) {
  uint32_t first = 0, last = column.part_count;
  while (last - first > 1) {
    const uint32_t middle = (first + last) / 2;
    (column.parts[middle].first_id <= id ? first : last) = middle;
  }
  return first;
}

// The place of the i-th row.
__device__ inline RowPlace FindRow(const FeatureColumn& column,
                                   const WantedRows& wanted, uint64_t i) {
  uint64_t row = wanted.rows[i];
  const uint32_t index =
      wanted.parts == nullptr ? PartOfNode(column, row) : wanted.parts[i];
  if (index >= column.part_count) return {};
  const PartRows& part = column.parts[index];
  if (wanted.parts == nullptr) row -= part.first_id;
  if (row >= part.count) return {};
  if (row < part.held) {
    const std::byte* share = column.shares[row % column.share_count];
    if (share != nullptr) {
      const uint64_t at = row / column.share_count * column.row_bytes;
      return {share + part.at + at, true};
    }
  }
  return {part.pinned + row * column.row_bytes, false};
}

// Copies rows of a column to `to`, one after another, in words that all rows
// are aligned for. Each row is copied by 2^thread_bits neighbouring threads,
// which look it up once each, however wide it is. Rows that do not exist become
// zeros.
template <typename Word>
__global__ void __launch_bounds__(kMaxBlock)
    GatherWantedRows(FeatureColumn column, WantedRows wanted,
                     unsigned thread_bits, Word* to, RowTally* tally) {
  const uint64_t row_words = column.row_bytes / sizeof(Word);
  const uint64_t row_threads = uint64_t{1} << thread_bits;
  const uint64_t work = wanted.count << thread_bits;
  uint32_t device_rows = 0;
  for (uint64_t i = ThreadOfGrid(); i < work; i += ThreadsOfGrid()) {
    const uint64_t first = i & (row_threads - 1);
    const RowPlace place = FindRow(column, wanted, i >> thread_bits);
    const auto* row = reinterpret_cast<const Word*>(place.data);
    Word* to_row = to + (i >> thread_bits) * row_words;
    if (row == nullptr) Report(&tally->trouble, kBadRow);
    if (first == 0 && place.on_device) ++device_rows;
    for (uint64_t word = first; word < row_words; word += row_threads) {
      to_row[word] = row == nullptr ? Word{} : row[word];
    }
  }
  if (device_rows > 0) atomicAdd(&tally->device_rows, device_rows);
}

}  // namespace millrace::cuda
