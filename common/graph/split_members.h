// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

// The nodes of a type that are in one of its splits, as a bit set. Any number
// of threads may read it while no thread adds to it.
class SplitMembers {
 public:
  explicit SplitMembers(uint64_t node_count = 0)
      : node_count_(node_count), bits_(node_count / 64 + 1) {}

  // `id` must be below the number of nodes.
  void Add(uint64_t id) { bits_[id / 64] |= uint64_t{1} << id % 64; }

  // Also true for ids that are not below the number of nodes, so that the code
  // that reads the node reports the error.
  bool contains(uint64_t id) const {
    return id >= node_count_ || (bits_[id / 64] >> id % 64 & 1) != 0;
  }

  // Bit v % 64 of word v / 64 is that of node v.
  std::span<const uint64_t> words() const { return bits_; }

 private:
  uint64_t node_count_;
  std::vector<uint64_t> bits_;
};

}  // namespace millrace
