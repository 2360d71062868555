// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "client/nn/aggregate.h"
#include "client/nn/conv.h"
#include "client/nn/model_config.h"
#include "client/nn/parameters.h"

namespace millrace {

// From rows of nodes to rows of graphs: pooling (Xu et al. 2019: sums), then,
// if wanted, an MLP with relu and dropout between its layers, as PyG's
// examples of graph classification.
class GraphHead {
 public:
  // The layers of the model's dropout places that are taken.
  // Adds head.lins.0 and head.lins.1 with weight and bias each, or nothing.
  GraphHead(const ModelConfig& config, int dropout_place,
            ParameterSet& parameters, Initializer& initializer);

  // rows: [nodes, in]; members: [graphs] lists of nodes. Returns
  // [graphs, config.out].
  at::Tensor Forward(const at::Tensor& rows, const Neighbors& members,
                     const Pass& pass) const;

 private:
  const Aggregation readout_;
  const double dropout_;
  const int dropout_place_;
  at::Tensor inner_weight_, inner_bias_;  // undefined: no MLP
  at::Tensor outer_weight_, outer_bias_;
};

}  // namespace millrace
