// SPDX-License-Identifier: Apache-2.0
#include "client/nn/dropout.h"

#include <ATen/ops/mul.h>

#include <cmath>

#include "client/nn/operators/operators.h"
#include "common/random/philox.h"

namespace millrace {
namespace {

// A separate key for each (seed, epoch, batch, layer). The constant keeps it
// apart from the keys of the sampler, which also come from the job's seed.
uint64_t LayerKey(const DropoutKey& key, int layer) {
  constexpr uint32_t kDropoutDomain = 0x64726f70;  // "drop"
  const PhiloxWords words = Philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {key.epoch, key.batch, kDropoutDomain, static_cast<uint32_t>(layer)});
  return (uint64_t{words[1]} << 32) | words[0];
}

}  // namespace

at::Tensor DropoutFactors(int64_t count, const at::Tensor& place, double rate,
                          const DropoutKey& key, int layer) {
  const int64_t threshold = std::lround(rate * 65536.0);
  if (threshold == 0) return {};
  return operators::DropoutMask(place, count, LayerKey(key, layer), threshold);
}

at::Tensor Dropout(const at::Tensor& rows, double rate, const DropoutKey& key,
                   int layer) {
  const at::Tensor factors =
      DropoutFactors(rows.numel(), rows, rate, key, layer);
  return factors.defined() ? at::mul(rows, factors.view(rows.sizes())) : rows;
}

}  // namespace millrace
