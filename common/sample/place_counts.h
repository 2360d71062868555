// SPDX-License-Identifier: Apache-2.0
// How much of the work of a process GPUs have done.
#pragma once

#include <cstdint>

namespace millrace {

// Hops by where their neighbours were drawn. In a process that makes whole
// batches, all hops of a batch count for where it was made; a server counts
// one for each relation and partition that it draws from in a hop.
struct HopCounts {
  uint64_t device = 0;
  uint64_t host = 0;
};

// Feature rows that devices have read, by whose memory they were in; and those
// that the CPU has read because a device has failed.
struct FeatureRowCounts {
  uint64_t device_rows = 0;
  uint64_t host_rows = 0;  // pinned
  uint64_t cpu_rows = 0;
};

struct PlaceCounts {
  HopCounts hops;
  FeatureRowCounts device_reads;
  uint64_t host_reads = 0;  // feature rows that the CPU has read
};

}  // namespace millrace
