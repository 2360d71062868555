// SPDX-License-Identifier: Apache-2.0
#include "common/sample/explicit_seeds.h"

#include <cstring>

namespace millrace {
namespace {

// Rows of `width` values.
template <typename T>
std::vector<T> RowsAt(const std::vector<T>& values, size_t width,
                      const std::vector<uint64_t>& positions) {
  std::vector<T> rows;
  if (values.empty()) return rows;
  rows.reserve(positions.size() * width);
  for (const uint64_t position : positions) {
    const auto row = values.begin() + static_cast<ptrdiff_t>(position * width);
    rows.insert(rows.end(), row, row + static_cast<ptrdiff_t>(width));
  }
  return rows;
}

}  // namespace

ExplicitSeeds ExplicitSeeds::At(const std::vector<uint64_t>& positions) const {
  ExplicitSeeds some;
  some.ids = RowsAt(ids, 1, positions);
  some.times = RowsAt(times, 1, positions);
  some.dst = RowsAt(dst, 1, positions);
  some.edge_types = RowsAt(edge_types, 1, positions);
  some.negatives = RowsAt(
      negatives, ids.empty() ? 0 : negatives.size() / ids.size(), positions);
  if (labels.present()) {
    some.labels = Array::Allocate(labels.dtype(),
                                  {static_cast<int64_t>(positions.size())});
    const size_t bytes = labels.row_bytes();
    std::byte* out = some.labels.mutable_data();
    for (const uint64_t position : positions) {
      std::memcpy(out, labels.data() + position * bytes, bytes);
      out += bytes;
    }
  }
  return some;
}

}  // namespace millrace
