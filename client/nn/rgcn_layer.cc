// SPDX-License-Identifier: Apache-2.0
#include "client/nn/rgcn_layer.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace millrace {
RgcnLayer::RgcnLayer(const std::string& prefix,
                     std::vector<GraphShape::Relation> relations,
                     const Options& options, ParameterSet& parameters,
                     Initializer& initializer)
    : relations_(std::move(relations)),
      weight_(parameters.AddParameter(
          prefix + ".weight",
          initializer.GlorotStack(options.bases > 0
                                      ? options.bases
                                      : static_cast<int64_t>(relations_.size()),
                                  options.in, options.out))),
      mix_(options.bases > 0
               ? parameters.AddParameter(
                     prefix + ".comp",
                     initializer.Glorot(static_cast<int64_t>(relations_.size()),
                                        options.bases))
               : at::Tensor()),
      root_(parameters.AddParameter(
          prefix + ".root", initializer.Glorot(options.in, options.out))),
      bias_(parameters.AddParameter(prefix + ".bias",
                                    at::zeros({options.out}, at::kFloat))) {}

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

}  // namespace millrace
