// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "client/nn/aggregate.h"
#include "client/nn/conv.h"
#include "client/nn/model_config.h"
#include "client/nn/parameters.h"

namespace millrace {

// Computes rows of graphs from rows of their nodes: pooling (Xu et al. 2019 use
// sums), optionally followed by an MLP with relu and dropout between its
// layers, as in PyG's examples of graph classification.
class GraphHead {
 public:
  // `dropout_place`: the first dropout place that the model's layers leave
  // free.
  // Adds head.lins.0 and head.lins.1, each with weight and bias, or nothing.
  GraphHead(const ModelConfig& config, int dropout_place,
            ParameterSet& parameters, Initializer& initializer);

  // rows: [nodes, in]; members: for each graph the list of its nodes. Returns
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
