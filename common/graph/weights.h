// SPDX-License-Identifier: Apache-2.0
// Edge weights as integers, so that no machine rounds a draw otherwise;
// docs/determinism.md section 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

// Entries of one weighted list: sums of integer weights stay below 2^63.
inline constexpr size_t kMaxWeightedDegree = (size_t{1} << 31) - 1;

// The sums of the integer weights of one list up to and including each entry.
// `weights` are finite, at least 0, and at most kMaxWeightedDegree.
std::vector<uint64_t> WeightSums(std::span<const float> weights);

}  // namespace millrace
