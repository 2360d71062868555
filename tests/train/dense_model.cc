// SPDX-License-Identifier: Apache-2.0
#include "tests/train/dense_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "client/tensor/batch_tensors.h"

namespace millrace::testing {
namespace {

using State = std::map<std::string, at::Tensor>;

struct DenseRelation {
  std::string name;
  size_t src, dst;
  at::Tensor adjacency;  // [dst, src]: number of edges
};

size_t FindType(const TestGraph& graph, const std::string& name) {
  for (size_t t = 0; t < graph.types.size(); ++t) {
    if (graph.types[t].name == name) return t;
  }
  return graph.types.size();
}

std::vector<DenseRelation> Relations(const TestGraph& graph) {
  std::vector<DenseRelation> relations;
  for (const TestRelation& relation : graph.relations) {
    DenseRelation dense;
    dense.name = relation.src + "__" + relation.name + "__" + relation.dst;
    dense.src = FindType(graph, relation.src);
    dense.dst = FindType(graph, relation.dst);
    dense.adjacency =
        at::zeros({graph.types[dense.dst].count, graph.types[dense.src].count},
                  at::kDouble);
    auto cells = dense.adjacency.accessor<double, 2>();
    for (const auto& [u, v] : relation.edges) cells[v][u] += 1;
    relations.push_back(dense);
  }
  return relations;
}

at::Tensor Mean(const at::Tensor& adjacency, const at::Tensor& x) {
  return at::matmul(adjacency / adjacency.sum(1, true).clamp_min(1), x);
}

at::Tensor Max(const at::Tensor& adjacency, const at::Tensor& x) {
  const at::Tensor cells = at::where(
      adjacency.unsqueeze(2) > 0, x.unsqueeze(0),
      at::zeros({}, at::kDouble) - std::numeric_limits<double>::infinity());
  return at::where((adjacency.sum(1, true) > 0), cells.amax(1),
                   at::zeros({}, at::kDouble));
}

at::Tensor Sage(const State& state, const std::string& prefix,
                Aggregation aggregation, const at::Tensor& adjacency,
                const at::Tensor& source, const at::Tensor& target) {
  const at::Tensor sum =
      aggregation == Aggregation::kMean  ? Mean(adjacency, source)
      : aggregation == Aggregation::kSum ? at::matmul(adjacency, source)
                                         : Max(adjacency, source);
  return at::linear(sum, state.at(prefix + ".lin_l.weight"),
                    state.at(prefix + ".lin_l.bias")) +
         at::linear(target, state.at(prefix + ".lin_r.weight"));
}

at::Tensor Gin(const State& state, const std::string& prefix,
               const at::Tensor& adjacency, const at::Tensor& source,
               const at::Tensor& target) {
  const at::Tensor sum =
      at::matmul(adjacency, source) + (1 + state.at(prefix + ".eps")) * target;
  const std::string lins = prefix + ".nn.lins.";
  return at::linear(at::relu(at::linear(sum, state.at(lins + "0.weight"),
                                        state.at(lins + "0.bias"))),
                    state.at(lins + "1.weight"), state.at(lins + "1.bias"));
}

at::Tensor WithSelfLoops(const at::Tensor& adjacency) {
  const at::Tensor identity = at::eye(adjacency.size(0), at::kDouble);
  return adjacency * (1 - identity) + identity;
}

// `score`: [dst, src, heads]; `values`: [src, heads, width]. `concat`: hidden
// layers concatenate the heads, the last layer averages them.
at::Tensor Attend(const at::Tensor& edges, const at::Tensor& score,
                  const at::Tensor& values, bool concat) {
  const at::Tensor weight = edges.unsqueeze(2) * score.exp();
  const at::Tensor sum = at::einsum(
      "ijh,jhc->ihc", {weight / (weight.sum(1, true) + 1e-16), values});
  return concat ? sum.reshape({sum.size(0), -1}) : sum.mean(1);
}

at::Tensor Gat(const State& state, const std::string& prefix, bool concat,
               const at::Tensor& adjacency, const at::Tensor& source,
               const at::Tensor& target) {
  const at::Tensor attend_src = state.at(prefix + ".att_src");
  const int64_t heads = attend_src.size(1), width = attend_src.size(2);
  const bool own = state.contains(prefix + ".lin.weight");
  const auto project = [&](const char* which, const at::Tensor& x) {
    return at::linear(x, state.at(prefix + (own ? ".lin" : which) + ".weight"))
        .view({x.size(0), heads, width});
  };
  const at::Tensor values = project(".lin_src", source);
  const at::Tensor from = (values * attend_src).sum(2);
  const at::Tensor to =
      (project(".lin_dst", target) * state.at(prefix + ".att_dst")).sum(2);
  const at::Tensor score =
      at::leaky_relu(to.unsqueeze(1) + from.unsqueeze(0), 0.2);
  return Attend(own ? WithSelfLoops(adjacency) : adjacency, score, values,
                concat) +
         state.at(prefix + ".bias");
}

at::Tensor Gatv2(const State& state, const std::string& prefix, bool concat,
                 bool self_loops, const at::Tensor& adjacency,
                 const at::Tensor& source, const at::Tensor& target) {
  const at::Tensor attend = state.at(prefix + ".att");
  const auto project = [&](const std::string& lin, const at::Tensor& x) {
    return at::linear(x, state.at(prefix + lin + ".weight"),
                      state.at(prefix + lin + ".bias"))
        .view({x.size(0), attend.size(1), attend.size(2)});
  };
  const at::Tensor values = project(".lin_l", source);
  const at::Tensor both =
      project(".lin_r", target).unsqueeze(1) + values.unsqueeze(0);
  const at::Tensor score = (at::leaky_relu(both, 0.2) * attend).sum(3);
  return Attend(self_loops ? WithSelfLoops(adjacency) : adjacency, score,
                values, concat) +
         state.at(prefix + ".bias");
}

at::Tensor Weights(const State& state, const std::string& prefix) {
  const at::Tensor weight = state.at(prefix + ".weight");
  if (!state.contains(prefix + ".comp")) return weight;
  return at::einsum("rb,bio->rio", {state.at(prefix + ".comp"), weight});
}

// Computes one layer; undefined if the model has no parameters for the type.
std::vector<at::Tensor> Layer(const State& state, const Model& model, int layer,
                              const std::vector<DenseRelation>& relations,
                              const std::vector<at::Tensor>& x) {
  const ModelConfig& config = model.config();
  const std::string convs = "convs." + std::to_string(layer);
  std::vector<at::Tensor> sums(x.size());
  if (config.kind == ModelKind::kRgcn) {
    for (size_t t = 0; t < x.size(); ++t) {
      sums[t] = at::matmul(x[t], state.at(convs + ".root")) +
                state.at(convs + ".bias");
    }
  }
  for (size_t r = 0; r < relations.size(); ++r) {
    const auto& [name, src, dst, adjacency] = relations[r];
    const std::string prefix =
        model.shape().homogeneous() ? convs : convs + ".convs." + name;
    at::Tensor result;
    if (config.kind == ModelKind::kRgcn) {
      result = at::matmul(Mean(adjacency, x[src]),
                          Weights(state, convs)[static_cast<int64_t>(r)]);
    } else if (state.contains(prefix + ".att")) {
      result = Gatv2(state, prefix, layer + 1 < config.layers,
                     model.shape().homogeneous(), adjacency, x[src], x[dst]);
    } else if (state.contains(prefix + ".lin_l.weight")) {
      result =
          Sage(state, prefix, config.aggregation, adjacency, x[src], x[dst]);
    } else if (state.contains(prefix + ".eps")) {
      result = Gin(state, prefix, adjacency, x[src], x[dst]);
    } else if (state.contains(prefix + ".att_src")) {
      result = Gat(state, prefix, layer + 1 < config.layers, adjacency, x[src],
                   x[dst]);
    } else {
      continue;
    }
    sums[dst] = sums[dst].defined() ? sums[dst] + result : result;
  }
  return sums;
}

}  // namespace

at::Tensor DenseForward(const TestGraph& graph, const Model& model) {
  State state;
  for (const NamedTensor& named : model.parameters().State()) {
    state[named.name] = named.tensor.detach().to(at::kDouble);
  }
  std::vector<at::Tensor> x;
  for (const TestType& type : graph.types) {
    at::Tensor rows;
    if (type.feature.present()) {
      rows = ViewAsTensor(type.feature).value().to(at::kDouble);
    }
    const std::string projection = "lin_dict." + type.name;
    if (state.contains(projection + ".weight")) {
      rows = at::linear(rows, state[projection + ".weight"],
                        state[projection + ".bias"]);
    } else if (state.contains("emb_dict." + type.name + ".weight")) {
      rows = state["emb_dict." + type.name + ".weight"];
    }
    x.push_back(rows);
  }
  const std::vector<DenseRelation> relations = Relations(graph);
  const int layers = model.config().layers;
  for (int i = 0; i < layers; ++i) {
    const std::vector<at::Tensor> sums = Layer(state, model, i, relations, x);
    for (size_t t = 0; t < x.size(); ++t) {
      if (!sums[t].defined()) continue;
      x[t] = i + 1 < layers ? at::relu(sums[t]) : sums[t];
    }
  }
  return x[static_cast<size_t>(model.shape().seed_type)];
}

}  // namespace millrace::testing
