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
#include "client/nn/node_input.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"
#include "client/nn/script_model.h"

namespace millrace {

// The nodes of one type in a sampled subgraph, by hop, seeds first.
struct SubgraphNodes {
  at::Tensor x;            // [n, features] float; undefined: no features
  at::Tensor original_id;  // [n] kLong, where embeddings are learned
  // [hops + 2]: nodes first seen at hop h - 1 end at hop_offsets[h + 1].
  std::vector<uint32_t> hop_offsets;
};

// One sampled subgraph as a model reads it.
struct Subgraph {
  std::vector<SubgraphNodes> nodes;  // per node type
  std::vector<Neighbors> neighbors;  // per relation, of the expanded nodes
  Neighbors members;                 // graph seeds: the nodes of each graph
  // Per relation [e, d] float; for models that read them.
  std::vector<at::Tensor> edge_features = {};
};

// A stack of convolutions as PyG's BasicGNN: conv, norm, relu, dropout, and
// after the last conv nothing.
//
// On a homogeneous graph tensors have PyG's names: torch_geometric.nn.
// GraphSAGE, GCN, GAT and GIN load them, and RGCNConv those of convs.I.
//
// On other graphs each node type is first made --hidden wide (NodeInput).
// sage, gat and gin have one convolution per relation, convs.I.convs.NAME.*
// where NAME is SRC__REL__DST, summed per node type (PyG's HeteroConv; gat
// without self loops); rgcn's are convs.I.*; norms are norms.I.TYPE.*. A type
// that no relation leads to keeps its rows. What cannot reach the seeds'
// type is left out: the last layer holds the relations into that type alone.
//
// A homogeneous graph without features, and --model embedding of any graph,
// begin in the same way. Of edge seeds the rows of both ends are computed,
// `hidden` wide, and a Decoder scores them.
//
// Of graph seeds the rows of the nodes are added up (GraphHead).
//
// With config.kind "script" a ScriptModel takes the place of all layers.
// Threads: one at a time.
class Model {
 public:
  // Errors of ValidateModel and ScriptModel::Load. Without a shape: of a
  // homogeneous graph with config.in features.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      const ModelConfig& config,
      const std::optional<GraphShape>& shape = std::nullopt);

  // How many numbers such a model learns, without making it; the largest
  // int64_t if there are more, or more than any memory holds. Not of a script.
  // Errors of ValidateModel.
  static absl::StatusOr<int64_t> CountParameters(const ModelConfig& config,
                                                 const GraphShape& shape);

  // Of a script `out` and `hidden` are the columns of its result.
  const ModelConfig& config() const { return config_; }
  const GraphShape& shape() const { return shape_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }

  // What the model wants of the lists and of the columns of a batch.
  bool weighs_neighbors() const { return config_.kind == "gcn"; }
  bool adds_self_loops() const {
    return config_.kind == "gat" && shape_.homogeneous();
  }
  bool reads_original_ids() const;
  bool reads_edge_features() const {
    return script_ != nullptr && script_->reads_edge_features();
  }
  // Whether layers compute something of every source row, wanted or not.
  bool works_on_sources() const { return config_.kind == "gat"; }

  // Rows of the seeds, [seeds, out]. Layer i computes only nodes within
  // layers - 1 - i hops of a seed. Throws what LibTorch throws.
  at::Tensor Forward(const Subgraph& graph, const Pass& pass);
  // The same per node type, defined where GraphShape::IsOutput; of graph
  // seeds before they are added up.
  std::vector<at::Tensor> ForwardTypes(const Subgraph& graph, const Pass& pass);
  // The bytes that the layers' outputs for `graph` take, which training keeps
  // until the step is done; a lower bound of what a step takes. 0: a script.
  uint64_t LayerBytes(const Subgraph& graph) const;

  // Of edge seeds; else null.
  const Decoder* decoder() const { return decoder_.get(); }

  // The rows of `type` that layer 0 reads, from what the type has of them;
  // undefined for types that no layer reads.
  at::Tensor Input(TypeIndex type, const at::Tensor& x,
                   const at::Tensor& original_id) const;

  // What the model is instead of layers, or null.
  const ScriptModel* script() const { return script_.get(); }
  // Layer i of Forward by itself, without dropout (layer-wise inference); not
  // of a script.
  // Per type, defined where the target is.
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
        std::unique_ptr<ScriptModel> script, Initializer initializer);
  void MakeLayers(Initializer& initializer);

  // Whether NodeInput comes first.
  bool widens_inputs() const {
    return !shape_.homogeneous() || shape_.types[0].features == 0 ||
           config_.layers == 0;
  }
  std::unique_ptr<Layer> MakeLayer(int layer, Initializer& initializer);
  std::unique_ptr<Conv> MakeConv(int layer, size_t relation,
                                 Initializer& initializer);
  void MakeNorms();
  // The rows that a layer computes.
  int64_t TargetRows(int layer, const SubgraphNodes& nodes) const;
  // The target rows of a layer and their lists, from `input.source`.
  void TakeTargets(int layer, const Subgraph& graph, LayerInput& input) const;
  TypeIndex types() const {
    return static_cast<TypeIndex>(shape_.types.size());
  }

  const ModelConfig config_;
  const GraphShape shape_;
  const std::vector<std::vector<bool>> needed_;  // GraphShape::NeededTypes
  ParameterSet parameters_;
  std::vector<std::unique_ptr<NodeInput>> inputs_;  // per type; null: as is
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<ScriptModel> script_;  // instead of inputs and layers
  // [layer][type], layers - 1; null: none.
  std::vector<std::vector<std::unique_ptr<Norm>>> norms_;
  std::unique_ptr<GraphHead> head_;   // of graph seeds; else null
  std::unique_ptr<Decoder> decoder_;  // of edge seeds; else null
};

}  // namespace millrace
