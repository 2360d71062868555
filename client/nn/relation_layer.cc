// SPDX-License-Identifier: Apache-2.0
#include "client/nn/relation_layer.h"

#include <utility>

namespace millrace {

RelationLayer::RelationLayer(std::vector<GraphShape::Relation> relations,
                             std::vector<std::unique_ptr<Conv>> convs)
    : relations_(std::move(relations)), convs_(std::move(convs)) {}

std::vector<at::Tensor> RelationLayer::Forward(const LayerInput& input,
                                               const Pass& pass) const {
  std::vector<at::Tensor> sums(input.target.size());
  for (size_t r = 0; r < relations_.size(); ++r) {
    const at::Tensor& target = input.target[relations_[r].lists];
    if (convs_[r] == nullptr || !target.defined()) continue;
    at::Tensor result =
        convs_[r]->Forward(input.source[relations_[r].neighbors], target,
                           input.neighbors[r], pass);
    at::Tensor& sum = sums[relations_[r].lists];
    sum = sum.defined() ? sum.add(result) : std::move(result);
  }
  return sums;
}

}  // namespace millrace
