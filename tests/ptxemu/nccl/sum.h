// SPDX-License-Identifier: Apache-2.0
// The arithmetic of ncclAllReduce().
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptxemu/nccl/nccl_settings.h"

namespace millrace::ncclemu {

// 0 if sums of the type are not known here.
size_t SizeOf(ncclDataType_t type);
const char* NameOf(ncclDataType_t type);

struct SumJob {
  std::vector<const uint8_t*> inputs;  // by rank
  size_t count;                        // elements of each
  ncclDataType_t type;
  AdditionOrder order;
  uint64_t seed;  // for AdditionOrder::kRandom
};
// Writes the sums to `out`, which may be anywhere. Sums of 16-bit floats are
// rounded after each addition, and those of integers wrap. All ranks that give
// the same job get the same bits.
void AddUp(const SumJob& job, uint8_t* out);

}  // namespace millrace::ncclemu
