// SPDX-License-Identifier: Apache-2.0
// Models restated over dense adjacency matrices of whole graphs, in doubles,
// from nothing but their parameters' names.
#pragma once

#include <ATen/core/Tensor.h>

#include "client/nn/model.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

// [nodes of the seeds' type, out]: sage, gat, gin and rgcn without norm, over
// in-edges; parallel edges count each.
at::Tensor DenseForward(const TestGraph& graph, const Model& model);

}  // namespace millrace::testing
