// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "client/nn/operators/cpu_kernels.h"
#include "common/random/philox.h"

namespace millrace::operators::cpu {
namespace {

// Number of 16-bit draws in one Philox block.
constexpr int64_t kDraws = 8;
constexpr int64_t kGrainBlocks = 4096;

void FillBlock(PhiloxKey key, int64_t block, uint32_t threshold, float scale,
               float* out) {
  const auto counter = static_cast<uint64_t>(block);
  const PhiloxWords words =
      Philox(key, {static_cast<uint32_t>(counter),
                   static_cast<uint32_t>(counter >> 32), 0, 0});
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = (words[i] & 0xffff) < threshold ? 0.0f : scale;
    out[2 * i + 1] = (words[i] >> 16) < threshold ? 0.0f : scale;
  }
}

}  // namespace

at::Tensor DropoutMask(const at::Tensor&, int64_t count, int64_t key,
                       int64_t threshold) {
  const auto bits = static_cast<uint64_t>(key);
  const PhiloxKey words = {static_cast<uint32_t>(bits),
                           static_cast<uint32_t>(bits >> 32)};
  const auto below = static_cast<uint32_t>(threshold);
  const auto scale =
      static_cast<float>(65536.0 / (65536.0 - std::min(below, 65535u)));
  const at::Tensor mask = at::empty({count}, at::kFloat);
  auto* values = mask.mutable_data_ptr<float>();
  const int64_t blocks = (count + kDraws - 1) / kDraws;
  at::parallel_for(0, blocks, kGrainBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* out = values + block * kDraws;
      if ((block + 1) * kDraws <= count) {
        FillBlock(words, block, below, scale, out);
        continue;
      }
      float tail[kDraws];
      FillBlock(words, block, below, scale, tail);
      std::copy(tail, tail + (count - block * kDraws), out);
    }
  });
  return mask;
}

}  // namespace millrace::operators::cpu
