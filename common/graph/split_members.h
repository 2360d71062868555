// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace millrace {

// Which nodes of a type are in one of its splits, a bit for each.
class SplitMembers {
 public:
  explicit SplitMembers(uint64_t node_count = 0)
      : node_count_(node_count), bits_(node_count / 64 + 1) {}

  // `id` is below the number of nodes.
  void Add(uint64_t id) { bits_[id / 64] |= uint64_t{1} << id % 64; }

  // True of ids beyond the type's: it is for who reads the node to say that
  // there is none.
  bool contains(uint64_t id) const {
    return id >= node_count_ || (bits_[id / 64] >> id % 64 & 1) != 0;
  }

 private:
  uint64_t node_count_;
  std::vector<uint64_t> bits_;
};

}  // namespace millrace
