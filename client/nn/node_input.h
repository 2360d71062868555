// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "client/nn/graph_shape.h"
#include "client/nn/parameters.h"

namespace millrace {

// Gives the rows of a node type a fixed width: by a linear projection of its
// features or, if it has none, by a learned row per node.
class NodeInput {
 public:
  // Adds lin_dict.TYPE.weight [width, features] and lin_dict.TYPE.bias or, for
  // a type without features, emb_dict.TYPE.weight [nodes, width], indexed by
  // original id.
  NodeInput(const GraphShape::Type& type, int64_t width,
            ParameterSet& parameters, Initializer& initializer);

  bool learned() const { return table_.defined(); }
  // `feature`: [n, features] float; `original_id`: [n] kLong, used instead if
  // learned(). Returns [n, width].
  at::Tensor Forward(const at::Tensor& feature,
                     const at::Tensor& original_id) const;

 private:
  at::Tensor weight_, bias_;
  at::Tensor table_;
};

}  // namespace millrace
