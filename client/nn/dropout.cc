// SPDX-License-Identifier: Apache-2.0
#include "client/nn/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cmath>

#include "common/random/philox.h"

namespace millrace {
namespace {

// Number of 16-bit draws in one Philox block.
constexpr int64_t kDraws = 8;
constexpr int64_t kGrainBlocks = 4096;

// A separate key for each (seed, epoch, batch, layer). The constant keeps it
// apart from the keys of the sampler, which also come from the job's seed.
PhiloxKey LayerKey(const DropoutKey& key, int layer) {
  constexpr uint32_t kDropoutDomain = 0x64726f70;  // "drop"
  const PhiloxWords words = Philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {key.epoch, key.batch, kDropoutDomain, static_cast<uint32_t>(layer)});
  return {words[0], words[1]};
}

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

at::Tensor Dropout(const at::Tensor& rows, double rate, const DropoutKey& key,
                   int layer) {
  const auto threshold = static_cast<uint32_t>(std::lround(rate * 65536.0));
  if (threshold == 0) return rows;
  const auto scale =
      static_cast<float>(65536.0 / (65536.0 - std::min(threshold, 65535u)));
  const PhiloxKey layer_key = LayerKey(key, layer);
  at::Tensor mask = at::empty(rows.sizes(), at::kFloat);
  float* values = mask.mutable_data_ptr<float>();
  const int64_t count = mask.numel();
  const int64_t blocks = (count + kDraws - 1) / kDraws;
  at::parallel_for(0, blocks, kGrainBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* out = values + block * kDraws;
      if ((block + 1) * kDraws <= count) {
        FillBlock(layer_key, block, threshold, scale, out);
        continue;
      }
      float tail[kDraws];
      FillBlock(layer_key, block, threshold, scale, tail);
      std::copy(tail, tail + (count - block * kDraws), out);
    }
  });
  return at::mul(rows, mask);
}

}  // namespace millrace
