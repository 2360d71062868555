// SPDX-License-Identifier: Apache-2.0
#include "common/partition/renumbering.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace millrace {

Array IdVector::Slice(uint64_t begin, uint64_t end) const {
  return Array::Borrow(ids_.dtype(), {static_cast<int64_t>(end - begin)},
                       data_ + begin * ItemBytes(ids_.dtype()), nullptr);
}

Renumbering Renumber(const NodeType& type,
                     const std::vector<PartitionId>& owners,
                     std::span<const float> hotness, int parts) {
  const auto part_count = static_cast<size_t>(parts);
  std::vector<uint64_t> offsets(part_count + 1, 0);
  for (const PartitionId owner : owners) ++offsets[size_t{owner} + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());

  std::vector<uint64_t> original_of(owners.size());
  std::vector<uint64_t> next(offsets.begin(), offsets.end() - 1);
  for (size_t node = 0; node < owners.size(); ++node) {
    original_of[next[owners[node]]++] = node;
  }
  for (size_t part = 0; part < part_count; ++part) {
    std::sort(original_of.begin() + static_cast<int64_t>(offsets[part]),
              original_of.begin() + static_cast<int64_t>(offsets[part + 1]),
              [hotness](uint64_t a, uint64_t b) {
                return hotness[a] != hotness[b] ? hotness[a] > hotness[b]
                                                : a < b;
              });
  }
  Renumbering numbers{PartitionBook(std::move(offsets)), IdVector(type),
                      IdVector(type)};
  for (size_t id = 0; id < original_of.size(); ++id) {
    numbers.original_of.Set(id, original_of[id]);
    numbers.id_of.Set(original_of[id], id);
  }
  return numbers;
}

}  // namespace millrace
