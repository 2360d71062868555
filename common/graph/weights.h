// SPDX-License-Identifier: Apache-2.0
// Edge weights as integers, so that rounding does not make draws differ between
// machines; see docs/determinism.md, section 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

// Maximum length of a weighted list, which keeps sums of integer weights below
// 2^63.
inline constexpr size_t kMaxWeightedDegree = (size_t{1} << 31) - 1;

// The sums of the integer weights of one list, up to and including each entry.
// There must be at most kMaxWeightedDegree weights, all finite and
// non-negative.
std::vector<uint64_t> WeightSums(std::span<const float> weights);

}  // namespace millrace
