// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/linear.h>

#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/parameters.h"

namespace millrace {
namespace {

// GraphSAGE (Hamilton et al. 2017), as PyG's SAGEConv: lin_l(mean, sum or
// maximum over the neighbours) + lin_r(own features); only lin_l has a bias.
class SageConv final : public Conv {
 public:
  // Adds PREFIX.lin_l.weight, PREFIX.lin_l.bias and PREFIX.lin_r.weight.
  SageConv(const LayerSpec& spec, ParameterSet& parameters,
           Initializer& initializer)
      : aggregation_(spec.config.aggregation),
        neighbor_weight_(parameters.AddParameter(
            spec.prefix + ".lin_l.weight",
            initializer.LinearWeight(spec.out, spec.in))),
        bias_(
            parameters.AddParameter(spec.prefix + ".lin_l.bias",
                                    initializer.LinearBias(spec.out, spec.in))),
        own_weight_(parameters.AddParameter(
            spec.prefix + ".lin_r.weight",
            initializer.LinearWeight(spec.out, spec.in))) {}

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors, const Pass&) const override {
    const at::Tensor sum = Aggregate(aggregation_, source, neighbors);
    return at::linear(sum, neighbor_weight_, bias_)
        .add_(at::linear(target, own_weight_));
  }

 private:
  const Aggregation aggregation_;
  const at::Tensor neighbor_weight_;  // [out, in]
  const at::Tensor bias_;             // [out]
  const at::Tensor own_weight_;       // [out, in]
};

}  // namespace

std::unique_ptr<Conv> MakeSageConv(const LayerSpec& spec,
                                   ParameterSet& parameters,
                                   Initializer& initializer) {
  return std::make_unique<SageConv>(spec, parameters, initializer);
}

}  // namespace millrace
