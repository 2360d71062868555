// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

// The number of a partition, for arrays with one entry per node.
using PartitionId = uint16_t;
// Maximum number of partitions of a graph. Their numbers take five digits in
// paths and 16 bits in random keys.
inline constexpr int kMaxPartitions = 65535;

// Tells which partition owns a node. Each partition owns one contiguous range
// of ids per node type, so the book is a list of P + 1 offsets, and finding the
// owner is a binary search.
// Immutable; any thread may read it.
class PartitionBook {
 public:
  PartitionBook() = default;
  // `offsets`: P + 1 ascending numbers from 0 to the number of nodes.
  explicit PartitionBook(std::vector<uint64_t> offsets)
      : offsets_(std::move(offsets)) {}

  int partition_count() const { return static_cast<int>(offsets_.size()) - 1; }
  uint64_t node_count() const { return offsets_.back(); }
  uint64_t begin(int partition) const { return offsets_[partition]; }
  uint64_t end(int partition) const { return offsets_[partition + 1]; }
  // `id` must be below node_count().
  int Owner(uint64_t id) const {
    if (partition_count() == 1) return 0;
    return static_cast<int>(
        std::upper_bound(offsets_.begin() + 1, offsets_.end(), id) -
        (offsets_.begin() + 1));
  }
  std::span<const uint64_t> offsets() const { return offsets_; }

  // Number of original ids per lookup table. The table of partition
  // original_id / lookup_width() holds the node's id.
  uint64_t lookup_width() const {
    const auto partitions = static_cast<uint64_t>(partition_count());
    return (node_count() + partitions - 1) / partitions;
  }

  friend bool operator==(const PartitionBook&, const PartitionBook&) = default;

 private:
  std::vector<uint64_t> offsets_ = {0, 0};
};

// How many of a partition's rows, of which the first are the hottest, are the
// share `ratio` (0 to 1) of them.
inline uint64_t HottestRows(double ratio, uint64_t rows) {
  const double share = std::round(ratio * static_cast<double>(rows));
  return std::min(rows, static_cast<uint64_t>(share));
}

}  // namespace millrace
