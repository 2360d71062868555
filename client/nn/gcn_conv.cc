// SPDX-License-Identifier: Apache-2.0
#include "client/nn/gcn_conv.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

namespace millrace {

GcnConv::GcnConv(const std::string& prefix, int64_t in, int64_t out,
                 ParameterSet& parameters, Initializer& initializer)
    : bias_(parameters.AddParameter(prefix + ".bias",
                                    at::zeros({out}, at::kFloat))),
      weight_(parameters.AddParameter(prefix + ".lin.weight",
                                      initializer.Glorot(out, in))) {}

// Sums before multiplying: a layer has far fewer targets than sources, and a
// sum over raw features needs no gradient.
at::Tensor GcnConv::Forward(const at::Tensor& source, const at::Tensor& target,
                            const Neighbors& neighbors, const Pass&) const {
  const at::Tensor sum =
      WeightedSumOfNeighbors(source, neighbors)
          .addcmul(target, neighbors.self_weight.unsqueeze(1));
  return at::linear(sum, weight_, bias_);
}

}  // namespace millrace
