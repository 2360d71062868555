// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "common/random/philox.h"

namespace millrace {

// A node's random number, and the node's position in its list.
struct NumberedNode {
  uint64_t number;
  int64_t position;
  friend auto operator<=>(const NumberedNode&, const NumberedNode&) = default;
};

// Appends to `out`, in order, PhiloxNumber(key, nodes[i], c2) for each nodes[i]
// whose number is at most `limit`, at position `first` + i.
// The result does not depend on the CPU's vector unit.
void PhiloxAtMost(PhiloxKey key, std::span<const uint32_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out);
void PhiloxAtMost(PhiloxKey key, std::span<const uint64_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out);

}  // namespace millrace
