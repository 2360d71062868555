// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/nn/conv.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"

namespace millrace {

struct GinOptions {
  int64_t in = 0;
  int64_t out = 0;
  int mlp = 2;  // layers, 1 or 2
  NormKind norm = NormKind::kNone;
};

// The convolution of the graph isomorphism network (Xu et al. 2019), as PyG's
// GINConv in models.GIN: an MLP [in, out, out] with relu, applied to (1 + eps)
// x_i plus the sum over the neighbours; eps is 0 and not learned. With one
// layer the MLP is linear.
class GinConv final : public Conv {
 public:
  // Adds PREFIX.eps (a buffer), PREFIX.nn.lins.0 and PREFIX.nn.lins.1, each
  // with weight and bias, and the norm's tensors as PREFIX.nn.norms.0; with one
  // layer PREFIX.nn with weight and bias instead.
  GinConv(const std::string& prefix, const GinOptions& options,
          ParameterSet& parameters, Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const at::Tensor epsilon_;              // [1]
  at::Tensor inner_weight_, inner_bias_;  // [out, in], [out]
  at::Tensor outer_weight_, outer_bias_;  // [out, out]; undefined for one layer
  std::unique_ptr<Norm> norm_;            // null: none
};

}  // namespace millrace
