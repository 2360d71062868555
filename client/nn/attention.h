// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/aggregate.h"

namespace millrace {

// What one attention layer weighs neighbours with; H heads.
struct AttentionInput {
  at::Tensor values;        // [s, C] of the neighbours, the same for all heads
  at::Tensor source_score;  // [s, H]
  at::Tensor target_score;  // [rows, H]
  // Factors of the weights after the softmax (dropout); undefined: none.
  at::Tensor mask;  // [e, H], no gradient
};

// [rows, H, C]: the sum of each row's neighbours weighted by the softmax,
// over the row's list, of LeakyReLU_0.2(source_score + target_score), per
// head; 0 for an empty list. As PyG's GATConv: the largest score is
// subtracted first and 1e-16 added to the denominator. (Its projection may as
// well follow the sum: there are far fewer sums than neighbours.)
// Differentiable in all but `mask`. Sums run in list order, backward in the
// order of (row, list), whatever the number of threads.
at::Tensor AttendToNeighbors(const AttentionInput& input,
                             const Neighbors& neighbors);

}  // namespace millrace
