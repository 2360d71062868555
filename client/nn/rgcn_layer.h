// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/nn/graph_shape.h"
#include "client/nn/layer.h"
#include "client/nn/parameters.h"

namespace millrace {

// The relational convolution of Schlichtkrull et al. 2018: x_i W_0 + b + the
// sum over relations r of mean_{j in N_r(i)} x_j W_r. All node types share W_0
// and b, as in PyG's FastRGCNConv on the graph made homogeneous.
class RgcnLayer final : public Layer {
 public:
  struct Options {
    int64_t in = 0;
    int64_t out = 0;
    int bases = 0;  // B: W_r = sum_b comp[r, b] weight[b]; 0: none
  };
  // Adds PREFIX.weight [relations or B, in, out], with bases PREFIX.comp
  // [relations, B], PREFIX.root [in, out] and PREFIX.bias [out].
  RgcnLayer(const std::string& prefix,
            std::vector<GraphShape::Relation> relations, const Options& options,
            ParameterSet& parameters, Initializer& initializer);

  std::vector<at::Tensor> Forward(const LayerInput& input,
                                  const Pass& pass) const override;

 private:
  const std::vector<GraphShape::Relation> relations_;
  const at::Tensor weight_;  // [relations or B, in, out]
  const at::Tensor mix_;     // [relations, B]; undefined without bases
  const at::Tensor root_;    // [in, out]
  const at::Tensor bias_;    // [out]
};

}  // namespace millrace
