// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "common/sample/place_counts.h"

namespace millrace {

// Counts hops. Threads: any.
class HopCounter {
 public:
  void AddDevice(int hops) { device_ += static_cast<uint64_t>(hops); }
  void Add(bool on_device) { on_device ? AddDevice(1) : AddHost(1); }
  void AddHost(int hops) { host_ += static_cast<uint64_t>(hops); }
  HopCounts counts() const { return {device_, host_}; }

 private:
  std::atomic<uint64_t> device_ = 0;
  std::atomic<uint64_t> host_ = 0;
};

}  // namespace millrace
