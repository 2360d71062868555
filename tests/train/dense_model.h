// SPDX-License-Identifier: Apache-2.0
// Models reimplemented in doubles over dense adjacency matrices of whole
// graphs, using nothing of the model but its named parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/model.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

// [nodes of the seeds' type, out]: sage, gat, gatv2, gin and rgcn without norm,
// over in-edges; parallel edges count separately.
at::Tensor DenseForward(const TestGraph& graph, const Model& model);

}  // namespace millrace::testing
