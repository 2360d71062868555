// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/aggregate.h"

namespace millrace {

// A graph convolution from one matrix of nodes to another: over one relation
// whose neighbours lie in `source` and whose lists belong to `target`.
// Stateless between calls but for its parameters; calls may run in any
// thread as long as no two train at once.
class Conv {
 public:
  virtual ~Conv() = default;

  // source: [s, in]; target: [neighbors.rows(), in], the rows' own features.
  // Returns [neighbors.rows(), out].
  virtual at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                             const Neighbors& neighbors) const = 0;

  // Whether Forward reads the weights of `neighbors`.
  virtual bool weighs_neighbors() const = 0;
};

}  // namespace millrace
