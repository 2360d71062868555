// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "client/nn/conv.h"
#include "client/nn/graph_shape.h"
#include "client/nn/layer.h"

namespace millrace {

// One convolution per relation, the results summed per node type: PyG's
// HeteroConv(aggr='sum').
class RelationLayer final : public Layer {
 public:
  // `convs`: per relation; null if the relation takes no part.
  RelationLayer(std::vector<GraphShape::Relation> relations,
                std::vector<std::unique_ptr<Conv>> convs);

  std::vector<at::Tensor> Forward(const LayerInput& input,
                                  const Pass& pass) const override;

 private:
  const std::vector<GraphShape::Relation> relations_;
  const std::vector<std::unique_ptr<Conv>> convs_;
};

}  // namespace millrace
