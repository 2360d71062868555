// SPDX-License-Identifier: Apache-2.0
#include "client/nn/node_input.h"

#include <ATen/ops/linear.h>

namespace millrace {

NodeInput::NodeInput(const GraphShape::Type& type, int64_t width,
                     ParameterSet& parameters, Initializer& initializer) {
  if (type.features == 0) {
    table_ = parameters.AddParameter("emb_dict." + type.name + ".weight",
                                     initializer.Glorot(type.count, width));
    return;
  }
  const std::string prefix = "lin_dict." + type.name;
  weight_ = parameters.AddParameter(
      prefix + ".weight", initializer.LinearWeight(width, type.features));
  bias_ = parameters.AddParameter(prefix + ".bias",
                                  initializer.LinearBias(width, type.features));
}

at::Tensor NodeInput::Forward(const at::Tensor& feature,
                              const at::Tensor& original_id) const {
  return learned() ? table_.index_select(0, original_id)
                   : at::linear(feature, weight_, bias_);
}

}  // namespace millrace
