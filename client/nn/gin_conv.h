// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/nn/conv.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"

namespace millrace {

// The isomorphism network's convolution (Xu et al. 2019), as PyG's GINConv in
// models.GIN: an MLP [in, out, out] with relu of (1 + eps) x_i + the sum of
// neighbours; eps is 0 and not learned.
class GinConv final : public Conv {
 public:
  // Adds PREFIX.eps (a buffer), PREFIX.nn.lins.0 and PREFIX.nn.lins.1 with
  // weight and bias each, and the norm's tensors as PREFIX.nn.norms.0.
  GinConv(const std::string& prefix, int64_t in, int64_t out, NormKind norm,
          ParameterSet& parameters, Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const at::Tensor epsilon_;          // [1]
  const at::Tensor inner_weight_;     // [out, in]
  const at::Tensor inner_bias_;       // [out]
  const at::Tensor outer_weight_;     // [out, out]
  const at::Tensor outer_bias_;       // [out]
  const std::unique_ptr<Norm> norm_;  // null: none
};

}  // namespace millrace
