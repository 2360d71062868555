// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/nn/aggregate.h"
#include "client/nn/conv.h"

namespace millrace {

// What one layer reads, by node type and relation of a GraphShape.
struct LayerInput {
  std::vector<at::Tensor> source;  // [s, in]; undefined where nothing reads it
  // The first rows of the matrices are the nodes that the layer computes:
  // their own features, [rows, in]. Undefined: none of the type.
  std::vector<at::Tensor> target;
  std::vector<Neighbors> neighbors;  // of the target rows of the lists' type
};

// A convolution over all relations at once.
// Threads: as Conv.
class Layer {
 public:
  virtual ~Layer() = default;

  // Per node type [rows, out]; undefined where `target` is, and where no
  // relation leads to the type.
  virtual std::vector<at::Tensor> Forward(const LayerInput& input,
                                          const Pass& pass) const = 0;
};

}  // namespace millrace
