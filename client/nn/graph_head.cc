// SPDX-License-Identifier: Apache-2.0
#include "client/nn/graph_head.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "client/nn/dropout.h"

namespace millrace {

GraphHead::GraphHead(const ModelConfig& config, int dropout_place,
                     ParameterSet& parameters, Initializer& initializer)
    : readout_(config.readout),
      dropout_(config.dropout),
      dropout_place_(dropout_place) {
  if (!config.graph_head) return;
  const int64_t hidden = config.hidden;
  inner_weight_ = parameters.AddParameter(
      "head.lins.0.weight", initializer.LinearWeight(hidden, hidden));
  inner_bias_ = parameters.AddParameter("head.lins.0.bias",
                                        initializer.LinearBias(hidden, hidden));
  outer_weight_ = parameters.AddParameter(
      "head.lins.1.weight", initializer.LinearWeight(config.out, hidden));
  outer_bias_ = parameters.AddParameter(
      "head.lins.1.bias", initializer.LinearBias(config.out, hidden));
}

at::Tensor GraphHead::Forward(const at::Tensor& rows, const Neighbors& members,
                              const Pass& pass) const {
  const at::Tensor pooled = Aggregate(readout_, rows, members);
  if (!inner_weight_.defined()) return pooled;
  at::Tensor inner = at::relu(at::linear(pooled, inner_weight_, inner_bias_));
  if (pass.training && dropout_ > 0) {
    inner = Dropout(inner, dropout_, pass.dropout, dropout_place_);
  }
  return at::linear(inner, outer_weight_, outer_bias_);
}

}  // namespace millrace
