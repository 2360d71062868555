// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// How much memory a device has, which other processes use too.
struct GpuMemory {
  int device = 0;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

}  // namespace millrace
