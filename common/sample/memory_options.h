// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace millrace {

// Where a process keeps the graph or the features of a store.
enum class MemoryTier : uint8_t {
  kMmap,    // in the page cache
  kRam,     // in memory of the process
  kPinned,  // in pinned memory of the process, which devices read too
  kCuda,    // in the memory of a device
  kAuto,    // in the first of kCuda, kPinned and kRam that is possible
};

// Whether the CPU makes the batches that a device has no kernels for.
enum class DeviceFallback : uint8_t { kAllow, kForbid };

// Return the values by the words of options.
std::map<std::string, MemoryTier> MemoryTiers();
std::map<std::string, DeviceFallback> DeviceFallbacks();

struct MemoryOptions {
  MemoryTier graph = MemoryTier::kMmap;
  MemoryTier features = MemoryTier::kMmap;  // not kCuda or kAuto
  // Samples if the graph is in kPinned or kCuda. Its number among the devices
  // that the process sees.
  int device = 0;
  DeviceFallback fallback = DeviceFallback::kAllow;
};

}  // namespace millrace
