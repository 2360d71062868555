// SPDX-License-Identifier: Apache-2.0
#include "common/sample/memory_options.h"

namespace millrace {

bool UsesDevices(MemoryTier tier) {
  return tier == MemoryTier::kCuda || tier == MemoryTier::kPinned ||
         tier == MemoryTier::kAuto;
}

std::string_view WordOf(MemoryTier tier) {
  switch (tier) {
    case MemoryTier::kMmap:
      return "mmap";
    case MemoryTier::kRam:
      return "ram";
    case MemoryTier::kPinned:
      return "pinned";
    case MemoryTier::kCuda:
      return "cuda";
    case MemoryTier::kAuto:
      return "auto";
  }
  return "";
}

std::map<std::string, MemoryTier> MemoryTiers() {
  std::map<std::string, MemoryTier> tiers;
  for (const MemoryTier tier :
       {MemoryTier::kMmap, MemoryTier::kRam, MemoryTier::kPinned,
        MemoryTier::kCuda, MemoryTier::kAuto}) {
    tiers.emplace(WordOf(tier), tier);
  }
  return tiers;
}

std::map<std::string, DeviceFallback> DeviceFallbacks() {
  return {{"allow", DeviceFallback::kAllow},
          {"forbid", DeviceFallback::kForbid}};
}

}  // namespace millrace
