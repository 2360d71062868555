// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/aggregate.h"
#include "client/nn/operators/operators.h"

namespace millrace {

// [rows, d]: what Aggregate() and WeightedSumOfNeighbors() compute, by
// operators of our own, whose gradients have the same bits in every run on
// every device. (LibTorch's embedding_bag has no such gradient on GPUs.) Lists
// are kInt. Differentiable in `source`.
at::Tensor ReduceNeighbors(operators::Reduction how, const at::Tensor& source,
                           const Neighbors& neighbors);

}  // namespace millrace
