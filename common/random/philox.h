// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011), from
// Random123. docs/determinism.md, section 2, specifies every use.
#pragma once

#include "common/base/host_device.h"

// Random123's own value keeps the host from calling what a kernel can call.
#if defined(__CUDACC__)
#define R123_CUDA_DEVICE __host__ __device__
#endif
#include <Random123/philox.h>

#include <cstddef>
#include <cstdint>

namespace millrace {

// std::array, whose members a kernel cannot call.
template <size_t kSize>
struct PhiloxArray {
  uint32_t words[kSize];

  MILLRACE_HOST_DEVICE constexpr uint32_t operator[](size_t i) const {
    return words[i];
  }
  friend bool operator==(const PhiloxArray&, const PhiloxArray&) = default;
};

using PhiloxKey = PhiloxArray<2>;
using PhiloxWords = PhiloxArray<4>;

MILLRACE_HOST_DEVICE inline PhiloxWords Philox(PhiloxKey key,
                                               PhiloxWords counter) {
  r123::Philox4x32 generator;
  const r123::Philox4x32::ctr_type words = generator(
      {{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return {{words[0], words[1], words[2], words[3]}};
}

// The number of node n: w0 + 2^32 * w1, where w0 and w1 are the first words of
// Philox(key, {lo(n), hi(n), c2, 0}).
MILLRACE_HOST_DEVICE inline uint64_t PhiloxNumber(PhiloxKey key, uint64_t node,
                                                  uint32_t c2) {
  const PhiloxWords words =
      Philox(key, {{static_cast<uint32_t>(node),
                    static_cast<uint32_t>(node >> 32), c2, 0}});
  return words[0] | uint64_t{words[1]} << 32;
}

}  // namespace millrace
