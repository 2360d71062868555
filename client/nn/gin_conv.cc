// SPDX-License-Identifier: Apache-2.0
#include "client/nn/gin_conv.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

namespace millrace {

GinConv::GinConv(const std::string& prefix, const GinOptions& options,
                 ParameterSet& parameters, Initializer& initializer)
    : epsilon_(
          parameters.AddBuffer(prefix + ".eps", at::zeros({1}, at::kFloat))) {
  const int64_t in = options.in;
  const int64_t out = options.out;
  const std::string inner = prefix + (options.mlp == 1 ? ".nn" : ".nn.lins.0");
  inner_weight_ = parameters.AddParameter(inner + ".weight",
                                          initializer.LinearWeight(out, in));
  inner_bias_ =
      parameters.AddParameter(inner + ".bias", initializer.LinearBias(out, in));
  if (options.mlp == 1) return;
  outer_weight_ = parameters.AddParameter(prefix + ".nn.lins.1.weight",
                                          initializer.LinearWeight(out, out));
  outer_bias_ = parameters.AddParameter(prefix + ".nn.lins.1.bias",
                                        initializer.LinearBias(out, out));
  norm_ = Norm::Create(options.norm, prefix + ".nn.norms.0", out, parameters);
}

at::Tensor GinConv::Forward(const at::Tensor& source, const at::Tensor& target,
                            const Neighbors& neighbors,
                            const Pass& pass) const {
  const at::Tensor sum = Aggregate(Aggregation::kSum, source, neighbors)
                             .addcmul(target, epsilon_.add(1.0));
  at::Tensor inner = at::linear(sum, inner_weight_, inner_bias_);
  if (!outer_weight_.defined()) return inner;
  if (norm_ != nullptr) inner = norm_->Forward(inner, pass.training);
  return at::linear(at::relu(inner), outer_weight_, outer_bias_);
}

}  // namespace millrace
