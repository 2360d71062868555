// SPDX-License-Identifier: Apache-2.0
#include "client/nn/script_forward.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/nn/model.h"

namespace millrace {
namespace {

constexpr char kForward[] =
    "forward(x: Tensor, edge_index: Tensor[, edge_attr: Tensor])";
constexpr char kTypedForward[] =
    "forward(x_dict: Dict[str, Tensor], edge_index_dict: Dict[str, Tensor][, "
    "edge_attr_dict: Dict[str, Tensor]])";

at::Tensor EdgeIndex(const Neighbors& lists) {
  return at::stack({lists.index.to(at::kLong),
                    at::repeat_interleave(lists.indptr.diff().to(at::kLong))});
}

// Whether both ends of the relation have features, so that it is passed on.
bool IsPassed(const GraphShape& shape, size_t relation) {
  const GraphShape::Relation& ends = shape.relations[relation];
  return shape.types[ends.neighbors].features > 0 &&
         shape.types[ends.lists].features > 0;
}

// For a homogeneous graph a matrix, else a dictionary; `get` returns the matrix
// for an index.
template <typename Named, typename Get>
c10::IValue Argument(const GraphShape& shape, const std::vector<Named>& names,
                     Get&& get) {
  if (shape.homogeneous()) return get(0);
  c10::Dict<std::string, at::Tensor> dict;
  for (size_t i = 0; i < names.size(); ++i) {
    const at::Tensor tensor = get(i);
    if (tensor.defined()) dict.insert(names[i].name, tensor);
  }
  return dict;
}

}  // namespace

std::string ForwardText(const c10::FunctionSchema& schema) {
  std::vector<std::string> arguments;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    arguments.push_back(
        absl::StrCat(argument.name(), ": ", argument.type()->annotation_str()));
  }
  return absl::StrCat("forward(", absl::StrJoin(arguments, ", "), ")");
}

std::string WantedForward(const GraphShape& shape) {
  return shape.homogeneous() ? kForward : kTypedForward;
}

bool FitsForward(const c10::FunctionSchema& schema, const GraphShape& shape,
                 const c10::Argument*& edges) {
  const c10::TypePtr tensor = c10::TensorType::get();
  const c10::TypePtr wanted =
      shape.homogeneous()
          ? tensor
          : c10::DictType::create(c10::StringType::get(), tensor);
  const std::vector<c10::Argument>& arguments = schema.arguments();
  if (arguments.size() < 3) return false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const bool of_edges =
        i > 2 && absl::StartsWith(arguments[i].name(), "edge_attr");
    if (of_edges) edges = &arguments[i];
    const bool fits = i <= 2 || of_edges
                          ? wanted->isSubtypeOf(*arguments[i].type())
                          : arguments[i].default_value().has_value();
    if (!fits) return false;
  }
  return true;
}

bool GivesEdgeFeatures(const GraphShape& shape) {
  bool gives = false;
  for (size_t r = 0; r < shape.relations.size(); ++r) {
    gives |= IsPassed(shape, r) && shape.relations[r].features > 0;
  }
  return gives;
}

std::vector<c10::IValue> ForwardInputs(const GraphShape& shape,
                                       const Subgraph& graph) {
  return {Argument(shape, shape.types,
                   [&](size_t type) {
                     return shape.types[type].features > 0 ? graph.nodes[type].x
                                                           : at::Tensor();
                   }),
          Argument(shape, shape.relations, [&](size_t relation) {
            return IsPassed(shape, relation)
                       ? EdgeIndex(graph.neighbors[relation])
                       : at::Tensor();
          })};
}

c10::IValue EdgeFeatures(const GraphShape& shape, const Subgraph& graph) {
  return Argument(shape, shape.relations, [&](size_t relation) {
    return IsPassed(shape, relation) ? graph.edge_features[relation]
                                     : at::Tensor();
  });
}

at::Tensor RowsOf(const c10::IValue& result, const GraphShape& shape,
                  TypeIndex type) {
  if (result.isTensor()) {
    TORCH_CHECK(shape.IsOutput(type) && (!shape.source_type.has_value() ||
                                         shape.source_type == shape.seed_type),
                "the result is one Tensor, but rows of two node types are "
                "needed");
    return result.toTensor();
  }
  const std::string& name = shape.types[type].name;
  TORCH_CHECK(result.isGenericDict() && !shape.homogeneous(),
              "the result is a ", result.tagKind(), ", not a ",
              shape.homogeneous() ? "Tensor" : "Tensor or Dict[str, Tensor]");
  for (const auto& entry : result.toGenericDict()) {
    if (entry.key().isString() && entry.key().toStringRef() == name) {
      return entry.value().toTensor();
    }
  }
  TORCH_CHECK(false, "the result has no rows of node type ", name);
}

Subgraph SmallestGraph(const GraphShape& shape, at::Device device) {
  const auto rows = [device](int64_t columns) {
    return at::zeros({2, columns},
                     at::TensorOptions(at::kFloat).device(device));
  };
  Subgraph graph;
  for (const GraphShape::Type& type : shape.types) {
    graph.nodes.push_back({rows(type.features), {}, {0, 2, 2}});
  }
  const at::Tensor indptr =
      at::arange(3, at::TensorOptions(at::kInt).device(device));
  const at::Tensor index = indptr.narrow(0, 0, 2).flip(0);
  for (const GraphShape::Relation& relation : shape.relations) {
    graph.neighbors.push_back({indptr, index, {}, {}});
    graph.edge_features.push_back(
        relation.features > 0 ? rows(relation.features) : at::Tensor());
  }
  return graph;
}

}  // namespace millrace
