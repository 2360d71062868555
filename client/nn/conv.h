// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/aggregate.h"
#include "client/nn/dropout.h"

namespace millrace {

// State of one forward pass.
struct Pass {
  bool training = false;
  DropoutKey dropout;  // used only while training
};

// A graph convolution over one relation: reads the neighbours' rows in `source`
// and computes rows for the nodes of `target`, which own the lists.
// Stateless between calls except for parameters and running statistics.
// Threads: any, but at most one may be training.
class Conv {
 public:
  virtual ~Conv() = default;

  // source: [s, in]; target: [neighbors.rows(), in], the features of the rows
  // themselves.
  // Returns [neighbors.rows(), out], of any floating-point type within
  // ScopedPrecision. Throws what LibTorch throws.
  virtual at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                             const Neighbors& neighbors,
                             const Pass& pass) const = 0;
};

}  // namespace millrace
