// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

// Names one batch's dropout; no generator runs along, so a resumed run drops
// what the first one dropped.
struct DropoutKey {
  uint64_t seed = 0;
  uint32_t epoch = 0;
  uint32_t batch = 0;
};

// Zeroes each element with probability `rate` (a multiple of 2^-16 after
// rounding) and scales the rest by 1 / (1 - rate). Element i of a layer is a
// function of (key, layer, i), whatever the number of threads.
// `rate` in [0, 1).
at::Tensor Dropout(const at::Tensor& rows, double rate, const DropoutKey& key,
                   int layer);

}  // namespace millrace
