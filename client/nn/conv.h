// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/aggregate.h"
#include "client/nn/dropout.h"

namespace millrace {

// What a forward pass is for.
struct Pass {
  bool training = false;
  DropoutKey dropout;  // read while training
};

// A graph convolution from one matrix of nodes to another: over one relation
// whose neighbours lie in `source` and whose lists belong to `target`.
// Stateless between calls but for its parameters and running statistics;
// calls may run in any thread as long as no two train at once.
class Conv {
 public:
  virtual ~Conv() = default;

  // source: [s, in]; target: [neighbors.rows(), in], the rows' own features.
  // Returns [neighbors.rows(), out]. Throws what LibTorch throws.
  virtual at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                             const Neighbors& neighbors,
                             const Pass& pass) const = 0;
};

}  // namespace millrace
