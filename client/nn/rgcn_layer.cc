// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "client/nn/layer.h"
#include "client/nn/layer_spec.h"
#include "client/nn/parameters.h"

namespace millrace {
namespace {

// The relational convolution of Schlichtkrull et al. 2018: x_i W_0 + b + the
// sum over relations r of mean_{j in N_r(i)} x_j W_r. All node types share W_0
// and b, as in PyG's FastRGCNConv on the graph made homogeneous. With B bases
// (ModelConfig::bases) W_r is sum_b comp[r, b] weight[b].
class RgcnLayer final : public Layer {
 public:
  // Adds PREFIX.weight [relations or B, in, out], with bases PREFIX.comp
  // [relations, B], PREFIX.root [in, out] and PREFIX.bias [out].
  RgcnLayer(const LayerSpec& spec, ParameterSet& parameters,
            Initializer& initializer);

  std::vector<at::Tensor> Forward(const LayerInput& input,
                                  const Pass& pass) const override;

 private:
  const std::vector<GraphShape::Relation> relations_;
  const at::Tensor weight_;  // [relations or B, in, out]
  const at::Tensor mix_;     // [relations, B]; undefined without bases
  const at::Tensor root_;    // [in, out]
  const at::Tensor bias_;    // [out]
};

RgcnLayer::RgcnLayer(const LayerSpec& spec, ParameterSet& parameters,
                     Initializer& initializer)
    : relations_(spec.shape.relations),
      weight_(parameters.AddParameter(
          spec.prefix + ".weight",
          initializer.GlorotStack(spec.config.bases > 0
                                      ? spec.config.bases
                                      : static_cast<int64_t>(relations_.size()),
                                  spec.in, spec.out))),
      mix_(spec.config.bases > 0
               ? parameters.AddParameter(
                     spec.prefix + ".comp",
                     initializer.Glorot(static_cast<int64_t>(relations_.size()),
                                        spec.config.bases))
               : at::Tensor()),
      root_(parameters.AddParameter(spec.prefix + ".root",
                                    initializer.Glorot(spec.in, spec.out))),
      bias_(parameters.AddParameter(spec.prefix + ".bias",
                                    at::zeros({spec.out}, at::kFloat))) {}

// Takes means before multiplying: a layer has far fewer targets than sources.
std::vector<at::Tensor> RgcnLayer::Forward(const LayerInput& input,
                                           const Pass&) const {
  std::vector<at::Tensor> sums(input.target.size());
  for (size_t t = 0; t < sums.size(); ++t) {
    if (!input.target[t].defined()) continue;
    sums[t] = at::addmm(bias_, input.target[t], root_);
  }
  at::Tensor weights = weight_;
  if (mix_.defined()) {
    weights = at::mm(mix_, weight_.flatten(1))
                  .view({mix_.size(0), weight_.size(1), weight_.size(2)});
  }
  for (size_t r = 0; r < relations_.size(); ++r) {
    at::Tensor& sum = sums[relations_[r].lists];
    if (!sum.defined()) continue;
    const at::Tensor mean = MeanOfNeighbors(
        input.source[relations_[r].neighbors], input.neighbors[r]);
    sum = sum.addmm(mean, weights[static_cast<int64_t>(r)]);
  }
  return sums;
}

}  // namespace

std::unique_ptr<Layer> MakeRgcnLayer(const LayerSpec& spec,
                                     ParameterSet& parameters,
                                     Initializer& initializer) {
  return std::make_unique<RgcnLayer>(spec, parameters, initializer);
}

}  // namespace millrace
