// SPDX-License-Identifier: Apache-2.0
#include "common/sample/memory_options.h"

namespace millrace {

std::map<std::string, MemoryTier> MemoryTiers() {
  return {{"mmap", MemoryTier::kMmap},
          {"ram", MemoryTier::kRam},
          {"pinned", MemoryTier::kPinned},
          {"cuda", MemoryTier::kCuda},
          {"auto", MemoryTier::kAuto}};
}

std::map<std::string, DeviceFallback> DeviceFallbacks() {
  return {{"allow", DeviceFallback::kAllow},
          {"forbid", DeviceFallback::kForbid}};
}

}  // namespace millrace
