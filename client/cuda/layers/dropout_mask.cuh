// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/cuda/layers/for_each.cuh"
#include "common/random/philox.h"

namespace millrace::cuda::layers {

// Half of the factors that one block of Philox makes, which are stored at once.
struct alignas(16) FourFactors {
  float factors[4];
};

// A thread for each block of Philox: eight numbers of 16 bits.
struct WriteMask {
  static constexpr int64_t kDraws = 8;

  PhiloxKey key;
  uint32_t threshold;
  float scale;
  int64_t count;
  float* mask;

  __device__ float factor(uint32_t number) const {
    return number < threshold ? 0.0f : scale;
  }
  __device__ FourFactors Factors(uint32_t low, uint32_t high) const {
    return {{factor(low & 0xFFFF), factor(low >> 16), factor(high & 0xFFFF),
             factor(high >> 16)}};
  }
  __device__ void operator()(int64_t block, int64_t) const {
    const auto counter = static_cast<uint64_t>(block);
    const PhiloxWords words =
        Philox(key, {{static_cast<uint32_t>(counter),
                      static_cast<uint32_t>(counter >> 32), 0, 0}});
    const FourFactors halves[] = {Factors(words[0], words[1]),
                                  Factors(words[2], words[3])};
    float* to = mask + block * kDraws;
    const int64_t left = count - block * kDraws;
    if (left >= kDraws) {
      reinterpret_cast<FourFactors*>(to)[0] = halves[0];
      reinterpret_cast<FourFactors*>(to)[1] = halves[1];
      return;
    }
    // With constant bounds, so that the factors can stay in registers.
    for (int i = 0; i < kDraws; ++i) {
      if (i < left) to[i] = halves[i / 4].factors[i % 4];
    }
  }
};

template <typename Queue>
void LaunchDropoutMask(Queue& queue, uint64_t key, int64_t threshold,
                       int64_t count, float* mask) {
  const PhiloxKey words = {
      {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}};
  const auto below = static_cast<uint32_t>(threshold);
  const auto scale =
      static_cast<float>(65536.0 / (65536.0 - std::min(below, 65535u)));
  queue.ForEach(WriteMask{words, below, scale, count, mask},
                (count + WriteMask::kDraws - 1) / WriteMask::kDraws, 1);
}

}  // namespace millrace::cuda::layers
