// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "client/nn/aggregate.h"
#include "client/nn/dropout.h"

namespace millrace {

// The inputs of attention over neighbours, with H heads.
struct AttentionInput {
  at::Tensor values;        // [s, C], shared by all heads
  at::Tensor source_score;  // [s, H]
  at::Tensor target_score;  // [rows, H]
  // Factors applied to the weights after the softmax (see AttentionDropout);
  // undefined if there are none.
  at::Tensor mask;  // [e, H], no gradient
};

// Returns what dropout at `rate` multiplies the weights of all edges by, [e,
// heads]; undefined if it keeps all.
at::Tensor AttentionDropout(const Neighbors& neighbors, int64_t heads,
                            double rate, const DropoutKey& key, int place);

// Returns `mask` in the form that autograd's functions accept, which take no
// undefined tensors: empty instead, on the device of `place`.
at::Tensor DefinedMask(const at::Tensor& mask, const at::Tensor& place);

// [rows, H, C]: for each head, the sum over each row's neighbours weighted by
// softmax(LeakyReLU_0.2(source_score + target_score)) over the row's list; 0
// for an empty list. As in PyG's GATConv, the largest score is subtracted first
// and 1e-16 is added to the denominator. (The projection can be applied after
// the sum, which is cheaper: there are far fewer sums than neighbours.)
// Differentiable in everything except `mask`. Sums are computed in list order,
// and backward in (row, list) order, for any number of threads.
at::Tensor AttendToNeighbors(const AttentionInput& input,
                             const Neighbors& neighbors);

}  // namespace millrace
