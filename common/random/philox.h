// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011), from
// Random123. docs/determinism.md, section 2, specifies every use.
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cstdint>

namespace millrace {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxWords = std::array<uint32_t, 4>;

inline PhiloxWords Philox(PhiloxKey key, PhiloxWords counter) {
  r123::Philox4x32 generator;
  const r123::Philox4x32::ctr_type words = generator(
      {{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace millrace
