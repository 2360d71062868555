// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// Whether what is kept there is for devices.
bool UsesDevices(MemoryTier tier);

// The word of options for a value.
std::string_view WordOf(MemoryTier tier);

// Return the values by the words of options.
std::map<std::string, MemoryTier> MemoryTiers();
std::map<std::string, DeviceFallback> DeviceFallbacks();

struct MemoryOptions {
  MemoryTier graph = MemoryTier::kMmap;
  MemoryTier features = MemoryTier::kMmap;
  // Share of each partition's feature rows, hottest first, that are kept in the
  // memory of devices; the others are pinned then.
  double cache_ratio = 0;
  // Devices to use, by their numbers among those that the process sees: each
  // samples if the graph is in kPinned or kCuda, and all share the rows.
  std::vector<int> gpus = {0};
  DeviceFallback fallback = DeviceFallback::kAllow;
  // Whether devices read the rows of kPinned even if they keep none of them:
  // for batches that go to a device anyway.
  bool gpus_read_pinned = false;

  // Whether `gpus` matters.
  bool uses_devices() const {
    return cache_ratio != 0 || UsesDevices(graph) || UsesDevices(features);
  }
};

}  // namespace millrace
