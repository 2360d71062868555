// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "client/nn/graph_shape.h"
#include "client/nn/model_config.h"

namespace millrace {

// What a layer, or a convolution of it, is made from.
struct LayerSpec {
  const ModelConfig& config;
  const GraphShape& shape;
  std::string prefix;     // the names of its tensors begin with this
  int64_t in = 0;         // columns that it reads
  int64_t out = 0;        // columns that it computes
  bool last = false;      // whether it is the model's last
  int dropout_place = 0;  // a convolution's own, for Dropout()
};

}  // namespace millrace
