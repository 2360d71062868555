// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

// Identifies the dropout of one batch. There is no running generator, so a
// resumed run drops the same elements as the original.
struct DropoutKey {
  uint64_t seed = 0;
  uint32_t epoch = 0;
  uint32_t batch = 0;
};

// Zeroes each element with probability `rate` (rounded to a multiple of 2^-16)
// and scales the others by 1 / (1 - rate). The result for element i is a
// function of (key, layer, i), for any number of threads. `rate` is in [0, 1).
at::Tensor Dropout(const at::Tensor& rows, double rate, const DropoutKey& key,
                   int layer);
// Returns what Dropout() would multiply `count` elements by, [count], on the
// device of `place`; undefined if it would keep all of them.
at::Tensor DropoutFactors(int64_t count, const at::Tensor& place, double rate,
                          const DropoutKey& key, int layer);

}  // namespace millrace
