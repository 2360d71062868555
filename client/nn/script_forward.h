// SPDX-License-Identifier: Apache-2.0
// Arguments and results of a script's `forward`; ScriptModel describes them.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "client/nn/graph_shape.h"

namespace millrace {

struct Subgraph;

// "forward(x: Tensor, ...)", without the module.
std::string ForwardText(const c10::FunctionSchema& schema);

// The signature that graphs of `shape` require, in the same form.
std::string WantedForward(const GraphShape& shape);

// Whether `forward`, whose first argument is the module, accepts such graphs.
// Sets `edges` to its parameter for edge features, if it has one.
bool FitsForward(const c10::FunctionSchema& schema, const GraphShape& shape,
                 const c10::Argument*& edges);

// Whether any relation passed to `forward` has edge features.
bool GivesEdgeFeatures(const GraphShape& shape);

// The node features and lists as arguments.
std::vector<c10::IValue> ForwardInputs(const GraphShape& shape,
                                       const Subgraph& graph);
c10::IValue EdgeFeatures(const GraphShape& shape, const Subgraph& graph);

// The rows of all nodes of `type` in the result. Throws c10::Error if it has
// none.
at::Tensor RowsOf(const c10::IValue& result, const GraphShape& shape,
                  TypeIndex type);

// Two nodes per type, each in the other's list; all features are 0.
Subgraph SmallestGraph(const GraphShape& shape, at::Device device = at::kCPU);

}  // namespace millrace
