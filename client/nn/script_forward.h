// SPDX-License-Identifier: Apache-2.0
// What a script's `forward` is given and gives; ScriptModel says which.
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

// The same that graphs of `shape` need.
std::string WantedForward(const GraphShape& shape);

// Whether `forward`, whose first argument is the module, takes such graphs.
// `edges` becomes the parameter for features of edges, if there is one.
bool FitsForward(const c10::FunctionSchema& schema, const GraphShape& shape,
                 const c10::Argument*& edges);

// Whether any relation that `forward` is given has features of edges.
bool GivesEdgeFeatures(const GraphShape& shape);

// The features of nodes and the lists.
std::vector<c10::IValue> ForwardInputs(const GraphShape& shape,
                                       const Subgraph& graph);
c10::IValue EdgeFeatures(const GraphShape& shape, const Subgraph& graph);

// What the result says of all nodes of `type`. Throws c10::Error when it says
// nothing of them.
at::Tensor RowsOf(const c10::IValue& result, const GraphShape& shape,
                  TypeIndex type);

// Two nodes a type, each in the other's list; all features 0.
Subgraph SmallestGraph(const GraphShape& shape);

}  // namespace millrace
