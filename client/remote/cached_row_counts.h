// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Feature rows of batches by whether the client held them.
struct CachedRowCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;
};

}  // namespace millrace
