// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"
#include "client/tensor/batch_tensors.h"

namespace millrace {
namespace {

// The convolution of the graph isomorphism network (Xu et al. 2019), as PyG's
// GINConv in models.GIN: an MLP [in, out, out] with relu, applied to (1 + eps)
// x_i plus the sum over the neighbours; eps is 0 and not learned. With one
// layer (ModelConfig::gin_mlp) the MLP is linear.
class GinConv final : public Conv {
 public:
  // Adds PREFIX.eps (a buffer), PREFIX.nn.lins.0 and PREFIX.nn.lins.1, each
  // with weight and bias, and the norm's tensors as PREFIX.nn.norms.0; with one
  // layer PREFIX.nn with weight and bias instead.
  GinConv(const LayerSpec& spec, ParameterSet& parameters,
          Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const at::Tensor epsilon_;              // [1]
  at::Tensor inner_weight_, inner_bias_;  // [out, in], [out]
  at::Tensor outer_weight_, outer_bias_;  // [out, out]; undefined for one layer
  std::unique_ptr<Norm> norm_;            // null if none
};

GinConv::GinConv(const LayerSpec& spec, ParameterSet& parameters,
                 Initializer& initializer)
    : epsilon_(parameters.AddBuffer(spec.prefix + ".eps",
                                    at::zeros({1}, at::kFloat))) {
  const int64_t in = spec.in;
  const int64_t out = spec.out;
  const std::string& prefix = spec.prefix;
  const bool linear = spec.config.gin_mlp == 1;
  const std::string inner = prefix + (linear ? ".nn" : ".nn.lins.0");
  inner_weight_ = parameters.AddParameter(inner + ".weight",
                                          initializer.LinearWeight(out, in));
  inner_bias_ =
      parameters.AddParameter(inner + ".bias", initializer.LinearBias(out, in));
  if (linear) return;
  outer_weight_ = parameters.AddParameter(prefix + ".nn.lins.1.weight",
                                          initializer.LinearWeight(out, out));
  outer_bias_ = parameters.AddParameter(prefix + ".nn.lins.1.bias",
                                        initializer.LinearBias(out, out));
  norm_ =
      Norm::Create(spec.config.norm, prefix + ".nn.norms.0", out, parameters);
}

at::Tensor GinConv::Forward(const at::Tensor& source, const at::Tensor& target,
                            const Neighbors& neighbors,
                            const Pass& pass) const {
  const at::Tensor sum = Aggregate(Aggregation::kSum, source, neighbors)
                             .addcmul(target, epsilon_.add(1.0));
  at::Tensor inner = at::linear(sum, inner_weight_, inner_bias_);
  if (!outer_weight_.defined()) return inner;
  if (norm_ != nullptr) {
    inner = norm_->Forward(AsFloat(inner), pass.training);
  }
  return at::linear(at::relu(inner), outer_weight_, outer_bias_);
}

}  // namespace

std::unique_ptr<Conv> MakeGinConv(const LayerSpec& spec,
                                  ParameterSet& parameters,
                                  Initializer& initializer) {
  return std::make_unique<GinConv>(spec, parameters, initializer);
}

}  // namespace millrace
