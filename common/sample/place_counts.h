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

// Feature rows by who has read them, GPUs or the CPU, and, if GPUs, from where.
struct FeatureRowCounts {
  uint64_t gpu = 0;
  uint64_t gpu_pinned = 0;  // from pinned memory of the host
  uint64_t cpu = 0;
};

struct PlaceCounts {
  HopCounts hops;
  FeatureRowCounts rows;
};

}  // namespace millrace
