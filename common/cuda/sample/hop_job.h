// SPDX-License-Identifier: Apache-2.0
// What HopSampler is asked for, without anything that only nvcc or only the
// rest of the project knows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::cuda {

// What became of a batch.
enum class HopOutcome {
  kMade,
  kTrouble,   // make it on the CPU, which says what is wrong
  kNoMemory,  // of the device
  kFailed,    // the queue has failed, and says why
};

// Seeds of one type; local ids are given in the order of the lists.
struct SeedNodes {
  int type = 0;
  std::span<const uint64_t> ids;
  std::span<const uint32_t> trees;  // parallel to ids; empty unless disjoint
};

}  // namespace millrace::cuda
