// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace {

// Hops by where their neighbours were drawn. In a process that makes whole
// batches, all hops of a batch count for where it was made; a server counts
// each draw from the lists of one relation in one of its partitions.
struct HopCounts {
  uint64_t device = 0;
  uint64_t host = 0;
};

// Counts hops. Threads: any.
class HopCounter {
 public:
  void AddDevice(int hops) { device_ += static_cast<uint64_t>(hops); }
  void AddHost(int hops) { host_ += static_cast<uint64_t>(hops); }
  HopCounts counts() const { return {device_, host_}; }

 private:
  std::atomic<uint64_t> device_ = 0;
  std::atomic<uint64_t> host_ = 0;
};

}  // namespace millrace
