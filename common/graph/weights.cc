// SPDX-License-Identifier: Apache-2.0
#include "common/graph/weights.h"

#include <algorithm>
#include <cmath>

namespace millrace {

std::vector<uint64_t> WeightSums(std::span<const float> weights) {
  constexpr int kBits = 32;
  float largest = 0;
  for (const float weight : weights) largest = std::max(largest, weight);
  // Afterwards, largest < 2^exponent. Scaling by a power of two is exact.
  int exponent = 0;
  std::frexp(largest, &exponent);
  std::vector<uint64_t> sums;
  sums.reserve(weights.size());
  uint64_t sum = 0;
  for (const float weight : weights) {
    if (weight > 0) {
      const double scaled = std::ldexp(double{weight}, kBits - exponent);
      sum += std::max<uint64_t>(1, static_cast<uint64_t>(scaled));
    }
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace millrace
