// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/conv.h"
#include "client/nn/decoder.h"
#include "client/nn/graph_head.h"
#include "client/nn/graph_shape.h"
#include "client/nn/layer.h"
#include "client/nn/model_config.h"
#include "client/nn/model_kind.h"
#include "client/nn/node_input.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"
#include "client/nn/script_model.h"

namespace millrace {

// The nodes of one type in a sampled subgraph, ordered by hop, seeds first.
struct SubgraphNodes {
  at::Tensor x;            // [n, features] float; undefined: no features
  at::Tensor original_id;  // [n] kLong, if embeddings are learned
  // [hops + 2]: the nodes first seen in hop h - 1 end at hop_offsets[h + 1].
  std::vector<uint32_t> hop_offsets;
};

// One sampled subgraph in the form that a model reads.
struct Subgraph {
  std::vector<SubgraphNodes> nodes;  // per node type
  std::vector<Neighbors> neighbors;  // per relation, for expanded nodes
  Neighbors members;                 // graph seeds: the nodes of each graph
  // Per relation [e, d] float; only for models that read them.
  std::vector<at::Tensor> edge_features = {};
};

// A stack of convolutions like PyG's BasicGNN: conv, norm, relu and dropout,
// with nothing after the last conv.
//
// For a homogeneous graph, tensors have PyG's names: torch_geometric.nn.
// GraphSAGE, GCN, GAT and GIN can load them, and RGCNConv those of convs.I.
//
// For other graphs, each node type is first given width --hidden (NodeInput).
// Convolutions are made for each relation, as convs.I.convs.NAME.* where NAME
// is SRC__NAME__DST, and their results are summed per node type (PyG's
// HeteroConv; without self loops); layers over all relations are convs.I.*;
// norms are norms.I.TYPE.*. A type that no relation leads to keeps its rows.
// Whatever cannot reach the type of the seeds is left out, so the last layer
// has only relations into that type.
//
// A homogeneous graph without features, and any graph with --model embedding,
// start in the same way. For edge seeds the rows of both ends are computed,
// `hidden` wide, and a Decoder scores them.
//
// For graph seeds the rows of the nodes are pooled (GraphHead).
//
// With ModelKind::kScript, a ScriptModel replaces all layers.
// Not thread-safe.
class Model {
 public:
  // Makes a model on `device`, for subgraphs on it. Fails like ValidateModel
  // and ScriptModel::Load. Without `shape`: a homogeneous graph with config.in
  // features.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      const ModelConfig& config,
      const std::optional<GraphShape>& shape = std::nullopt,
      at::Device device = at::kCPU);

  // Number of values that such a model would learn, computed without creating
  // it; the largest int64_t if they exceed that or any memory. Not for scripts.
  // Fails like ValidateModel.
  static absl::StatusOr<int64_t> CountParameters(const ModelConfig& config,
                                                 const GraphShape& shape);

  // For a script, `out` and `hidden` are the columns of its result.
  const ModelConfig& config() const { return config_; }
  const GraphShape& shape() const { return shape_; }
  at::Device device() const { return parameters_.device(); }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }

  // What the model needs from the lists and columns of a batch.
  bool weighs_neighbors() const { return InfoOf(config_.kind).degree_weights; }
  bool adds_self_loops() const {
    return InfoOf(config_.kind).self_loops && shape_.homogeneous();
  }
  bool reads_original_ids() const;
  bool reads_edge_features() const {
    return script_ != nullptr && script_->reads_edge_features();
  }
  // Whether layers compute something for every source row, even unused ones.
  bool works_on_sources() const {
    return InfoOf(config_.kind).works_on_sources;
  }

  // The rows of the seeds, [seeds, out] kFloat. Layer i computes only nodes
  // within layers - 1 - i hops of a seed. Throws what LibTorch throws.
  at::Tensor Forward(const Subgraph& graph, const Pass& pass);
  // The same per node type, defined for types with GraphShape::IsOutput; for
  // graph seeds, before pooling.
  std::vector<at::Tensor> ForwardTypes(const Subgraph& graph, const Pass& pass);
  // Bytes of the layers' outputs for `graph`, which training keeps until the
  // step is done: a lower bound of a step's memory. 0 for a script.
  uint64_t LayerBytes(const Subgraph& graph) const;
  // The most bytes of them that a pass without gradients has at a time: those
  // of a layer and of the one before it.
  uint64_t PassBytes(const Subgraph& graph) const;

  // Null unless the seeds are edges.
  const Decoder* decoder() const { return decoder_.get(); }

  // The rows of `type` that layer 0 reads, from the type's features or ids;
  // undefined for types that no layer reads.
  at::Tensor Input(TypeIndex type, const at::Tensor& x,
                   const at::Tensor& original_id) const;

  // The script that replaces the layers, or null.
  const ScriptModel* script() const { return script_.get(); }
  // Runs layer i of Forward on its own, without dropout (for layer-wise
  // inference); not for scripts. Returns rows per type, defined where the
  // target is.
  std::vector<at::Tensor> RunLayer(int layer, const LayerInput& input,
                                   const Pass& pass);

  // Whether layer i computes rows of `type`; -1: whether layer 0 reads them.
  bool Computes(int layer, TypeIndex type) const {
    return needed_[layer + 1][type];
  }
  // Width of the matrices that layer i reads.
  int64_t InputWidth(int layer) const {
    return layer == 0 && !widens_inputs() ? shape_.types[0].features
                                          : config_.hidden;
  }
  int64_t OutputWidth(int layer) const {
    const bool pooled = shape_.members >= 0 && config_.graph_head;
    return layer + 1 == config_.layers && !pooled ? config_.out
                                                  : config_.hidden;
  }

 private:
  Model(const ModelConfig& config, const GraphShape& shape,
        std::unique_ptr<ScriptModel> script, Initializer initializer,
        at::Device device);
  void MakeLayers(Initializer& initializer);

  // Whether NodeInput comes first.
  bool widens_inputs() const {
    return !shape_.homogeneous() || shape_.types[0].features == 0 ||
           config_.layers == 0;
  }
  Precision PrecisionOf(const Pass& pass) const;
  std::unique_ptr<Layer> MakeLayer(int layer, Initializer& initializer);
  void MakeNorms();
  // Bytes of a layer's outputs.
  uint64_t OutputBytes(int layer, const Subgraph& graph) const;
  // Number of rows that a layer computes.
  int64_t TargetRows(int layer, const SubgraphNodes& nodes) const;
  // Sets the target rows of a layer and their lists, from `input.source`.
  void TakeTargets(int layer, const Subgraph& graph, LayerInput& input) const;
  TypeIndex types() const {
    return static_cast<TypeIndex>(shape_.types.size());
  }

  const ModelConfig config_;
  const GraphShape shape_;
  const std::vector<std::vector<bool>> needed_;  // GraphShape::NeededTypes
  ParameterSet parameters_;
  // Per type; null if the features are used as they are.
  std::vector<std::unique_ptr<NodeInput>> inputs_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<ScriptModel> script_;  // replaces inputs and layers
  // [layer][type], layers - 1 entries; null if there is no norm.
  std::vector<std::vector<std::unique_ptr<Norm>>> norms_;
  std::unique_ptr<GraphHead> head_;   // null unless for graph seeds
  std::unique_ptr<Decoder> decoder_;  // null unless for edge seeds
};

}  // namespace millrace
