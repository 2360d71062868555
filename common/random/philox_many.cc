// SPDX-License-Identifier: Apache-2.0
#include "common/random/philox_many.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "common/random/philox_vector.h"

namespace millrace {
namespace {

// The arguments of PhiloxAtMost(), except the nodes.
struct Numbering {
  PhiloxKey key;
  uint32_t c2;
  uint64_t limit;
  int64_t first;
  std::vector<NumberedNode>& out;
};

template <typename Id>
void OneByOne(const Numbering& numbering, std::span<const Id> nodes) {
  int64_t position = numbering.first;
  for (const uint64_t n : nodes) {
    const uint64_t number = PhiloxNumber(numbering.key, n, numbering.c2);
    if (number <= numbering.limit) numbering.out.push_back({number, position});
    ++position;
  }
}

using Vectors = void (*)(const PhiloxTask&, const uint32_t*, size_t,
                         PhiloxBlock&);

// The function for the CPU's widest vector unit; null if it has none.
Vectors WidestVectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return PhiloxAvx512;
  if (__builtin_cpu_supports("avx2")) return PhiloxAvx2;
#endif
  return nullptr;
}

// Appends those of the first `count` numbers of a block that are at most the
// limit; the block's first node is at position `first`.
void Take(const PhiloxBlock& block, size_t count, int64_t first,
          std::vector<NumberedNode>& out) {
  for (size_t begin = 0; begin < count; begin += PhiloxBlock::kMask) {
    uint64_t mask = block.at_most[begin / PhiloxBlock::kMask];
    for (; mask != 0; mask &= mask - 1) {
      const size_t at = begin + static_cast<size_t>(std::countr_zero(mask));
      out.push_back({block.numbers[at], first + static_cast<int64_t>(at)});
    }
  }
}

void ByVectors(Vectors vectors, const Numbering& numbering,
               std::span<const uint32_t> nodes) {
  const PhiloxTask task = {
      {numbering.key[0], numbering.key[1]}, numbering.c2, numbering.limit};
  PhiloxBlock block;
  for (size_t begin = 0; begin < nodes.size(); begin += PhiloxBlock::kSize) {
    const auto some = nodes.subspan(
        begin, std::min(PhiloxBlock::kSize, nodes.size() - begin));
    vectors(task, some.data(), some.size(), block);
    Take(block, some.size(), numbering.first + static_cast<int64_t>(begin),
         numbering.out);
  }
}

}  // namespace

void PhiloxAtMost(PhiloxKey key, std::span<const uint32_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out) {
  static const Vectors vectors = WidestVectors();
  const Numbering numbering = {key, c2, limit, first, out};
  if (vectors == nullptr) return OneByOne(numbering, nodes);
  ByVectors(vectors, numbering, nodes);
}

void PhiloxAtMost(PhiloxKey key, std::span<const uint64_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out) {
  OneByOne({key, c2, limit, first, out}, nodes);
}

}  // namespace millrace
