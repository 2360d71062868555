// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// A part of a store, and where it is.
struct MemoryCopy {
  std::string_view content;  // "graph" or "features"
  std::string_view memory;   // "ram", "pinned", "cuda", or "mmap": in its files
  uint64_t bytes = 0;        // in all devices
};

// How much memory a device has, which other processes use too.
struct GpuMemory {
  int device = 0;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

}  // namespace millrace
