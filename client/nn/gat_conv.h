// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "client/nn/conv.h"
#include "client/nn/parameters.h"

namespace millrace {

struct GatOptions {
  int64_t in = 0;
  int64_t out = 0;  // of the layer; if `concat`, a multiple of `heads`
  int heads = 1;
  bool concat = true;      // concatenate the heads' columns; else average
  bool bipartite = false;  // separate weights for source and target
  double dropout = 0.0;    // on attention weights, while training
  int dropout_layer = 0;   // see Dropout
};

// Graph attention (Velickovic et al. 2018), as PyG's GATConv without edge
// features. Adds no self loops: the lists must contain them if wanted.
class GatConv final : public Conv {
 public:
  // Adds PREFIX.att_src, PREFIX.att_dst, PREFIX.bias and PREFIX.lin.weight, or
  // if bipartite PREFIX.lin_src.weight and PREFIX.lin_dst.weight instead of the
  // last.
  GatConv(const std::string& prefix, const GatOptions& options,
          ParameterSet& parameters, Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  // [rows, heads]: the scores that the attention vector `score` [1, heads,
  // width] gives to the projections of `rows`, computed without projecting
  // them.
  at::Tensor Scores(const at::Tensor& rows, const at::Tensor& weight,
                    const at::Tensor& score) const;

  const GatOptions options_;
  const int64_t width_;             // of one head
  const at::Tensor source_score_;   // [1, heads, width]
  const at::Tensor target_score_;   // [1, heads, width]
  const at::Tensor bias_;           // [out]
  const at::Tensor source_weight_;  // [heads * width, in]
  const at::Tensor target_weight_;  // shares source_weight_ unless bipartite
};

}  // namespace millrace
