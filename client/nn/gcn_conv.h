// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "client/nn/conv.h"
#include "client/nn/parameters.h"

namespace millrace {

// The graph convolution of Kipf and Welling 2017, as PyG's GCNConv. The weights
// of `neighbors` contain the normalisation (see GcnWeights).
class GcnConv final : public Conv {
 public:
  // Adds PREFIX.bias and PREFIX.lin.weight.
  GcnConv(const std::string& prefix, int64_t in, int64_t out,
          ParameterSet& parameters, Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const at::Tensor bias_;    // [out]
  const at::Tensor weight_;  // [out, in]
};

}  // namespace millrace
