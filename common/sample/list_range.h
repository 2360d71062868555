// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace millrace {

// Where a list, or the admissible part of it, is in the files of its partition.
struct ListRange {
  int64_t begin = 0;
  int64_t degree = 0;
};

// Returns where the list of `row` is; nullopt if it is damaged: it would leave
// the `entries` of its partition.
inline std::optional<ListRange> RangeOfList(std::span<const int64_t> indptr,
                                            uint64_t row, int64_t entries) {
  const int64_t begin = indptr[row];
  const int64_t end = indptr[row + 1];
  if (begin < 0 || end < begin || end > entries) return std::nullopt;
  return ListRange{begin, end - begin};
}

}  // namespace millrace
