// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "client/nn/graph_shape.h"
#include "client/nn/parameters.h"

namespace millrace {

// Makes a node type's rows one width, whatever its features: a linear
// projection of them, or, where there are none, a learned row per node.
class NodeInput {
 public:
  // Adds lin_dict.TYPE.weight [width, features] and lin_dict.TYPE.bias, or,
  // for a type without features, emb_dict.TYPE.weight [nodes, width], by
  // original id.
  NodeInput(const GraphShape::Type& type, int64_t width,
            ParameterSet& parameters, Initializer& initializer);

  bool learned() const { return table_.defined(); }
  // `feature`: [n, features] float; or, if learned(), `original_id`: [n]
  // kLong. Returns [n, width].
  at::Tensor Forward(const at::Tensor& feature,
                     const at::Tensor& original_id) const;

 private:
  at::Tensor weight_, bias_;
  at::Tensor table_;
};

}  // namespace millrace
