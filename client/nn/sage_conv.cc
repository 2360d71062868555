// SPDX-License-Identifier: Apache-2.0
#include "client/nn/sage_conv.h"

#include <ATen/ops/linear.h>

namespace millrace {

SageConv::SageConv(const std::string& prefix, int64_t in, int64_t out,
                   Aggregation aggregation, ParameterSet& parameters,
                   Initializer& initializer)
    : aggregation_(aggregation),
      neighbor_weight_(parameters.AddParameter(
          prefix + ".lin_l.weight", initializer.LinearWeight(out, in))),
      bias_(parameters.AddParameter(prefix + ".lin_l.bias",
                                    initializer.LinearBias(out, in))),
      own_weight_(parameters.AddParameter(prefix + ".lin_r.weight",
                                          initializer.LinearWeight(out, in))) {}

at::Tensor SageConv::Forward(const at::Tensor& source, const at::Tensor& target,
                             const Neighbors& neighbors, const Pass&) const {
  const at::Tensor sum = Aggregate(aggregation_, source, neighbors);
  return at::linear(sum, neighbor_weight_, bias_)
      .add_(at::linear(target, own_weight_));
}

}  // namespace millrace
