// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp compute together: votes, shuffles, matches, sums.
#pragma once

#include <cstdint>
#include <random>

#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

inline constexpr uint32_t kWarpSize = 32;

struct WarpLane {
  bool is_member = false;
  Sources sources;
  uint64_t result = 0;
  bool predicate = false;
};

// Computes the results of all members. `mask` is the one that the instruction
// names. What PTX leaves undefined becomes random bits.
void ComputeWarpOperation(const Instruction& in, uint32_t mask,
                          WarpLane (&lanes)[kWarpSize],
                          std::mt19937_64* random);

}  // namespace millrace::ptxemu
