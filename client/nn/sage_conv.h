// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "client/nn/conv.h"
#include "client/nn/parameters.h"

namespace millrace {

// GraphSAGE (Hamilton et al. 2017), as PyG's SAGEConv: lin_l(mean, sum or
// maximum over the neighbours) + lin_r(own features); only lin_l has a bias.
class SageConv final : public Conv {
 public:
  // Adds PREFIX.lin_l.weight, PREFIX.lin_l.bias and PREFIX.lin_r.weight.
  SageConv(const std::string& prefix, int64_t in, int64_t out,
           Aggregation aggregation, ParameterSet& parameters,
           Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const Aggregation aggregation_;
  const at::Tensor neighbor_weight_;  // [out, in]
  const at::Tensor bias_;             // [out]
  const at::Tensor own_weight_;       // [out, in]
};

}  // namespace millrace
