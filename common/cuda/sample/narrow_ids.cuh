// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// Converts ids that all fit into 32 bits. A thread for each.
__global__ void __launch_bounds__(kMaxBlock)
    NarrowIds(const uint64_t* ids, uint64_t count, uint32_t* to) {
  for (uint64_t i = ThreadOfGrid(); i < count; i += ThreadsOfGrid()) {
    to[i] = static_cast<uint32_t>(ids[i]);
  }
}

}  // namespace millrace::cuda
