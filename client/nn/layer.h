// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/nn/aggregate.h"
#include "client/nn/conv.h"

namespace millrace {

// The input of one layer, by node type and relation of a GraphShape.
struct LayerInput {
  std::vector<at::Tensor> source;  // [s, in]; undefined where nothing reads it
  // The nodes that the layer computes are the first rows of each matrix; this
  // holds their own features, [rows, in]. Undefined if there are none.
  std::vector<at::Tensor> target;
  std::vector<Neighbors> neighbors;  // lists of the target rows
};

// A convolution over all relations at once.
// Threads: as for Conv.
class Layer {
 public:
  virtual ~Layer() = default;

  // Returns [rows, out] per node type; undefined where `target` is, and for
  // types that no relation leads to.
  virtual std::vector<at::Tensor> Forward(const LayerInput& input,
                                          const Pass& pass) const = 0;
};

}  // namespace millrace
