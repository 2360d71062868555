// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/parameters.h"

namespace millrace {
namespace {

// The graph convolution of Kipf and Welling 2017, as PyG's GCNConv. The weights
// of `neighbors` contain the normalisation (see GcnWeights).
class GcnConv final : public Conv {
 public:
  // Adds PREFIX.bias and PREFIX.lin.weight.
  GcnConv(const LayerSpec& spec, ParameterSet& parameters,
          Initializer& initializer)
      : bias_(parameters.AddParameter(spec.prefix + ".bias",
                                      at::zeros({spec.out}, at::kFloat))),
        weight_(
            parameters.AddParameter(spec.prefix + ".lin.weight",
                                    initializer.Glorot(spec.out, spec.in))) {}

  // Sums before multiplying: a layer has far fewer targets than sources, and a
  // sum over raw features needs no gradient.
  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors, const Pass&) const override {
    const at::Tensor sum =
        WeightedSumOfNeighbors(source, neighbors)
            .addcmul(target, neighbors.self_weight.unsqueeze(1));
    return at::linear(sum, weight_, bias_);
  }

 private:
  const at::Tensor bias_;    // [out]
  const at::Tensor weight_;  // [out, in]
};

}  // namespace

std::unique_ptr<Conv> MakeGcnConv(const LayerSpec& spec,
                                  ParameterSet& parameters,
                                  Initializer& initializer) {
  return std::make_unique<GcnConv>(spec, parameters, initializer);
}

}  // namespace millrace
