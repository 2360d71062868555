// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model.h"

#include <ATen/ops/relu.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "client/nn/layer_spec.h"
#include "client/nn/relation_layer.h"
#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Dropout places are numbered: one per layer, then those after the layers.
constexpr int kLayersPerPlace = kMaxLayers + 1;

int DropoutPlace(int layer, size_t place) {
  return layer + kLayersPerPlace * static_cast<int>(place);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(
    const ModelConfig& config, const std::optional<GraphShape>& shape,
    at::Device device) {
  const GraphShape known =
      shape.has_value() ? *shape : GraphShape::Homogeneous(config.in);
  MILLRACE_RETURN_IF_ERROR(ValidateModel(config, known));
  ModelConfig made = config;
  std::unique_ptr<ScriptModel> script;
  if (config.kind == ModelKind::kScript) {
    MILLRACE_ASSIGN_OR_RETURN(
        script, ScriptModel::Load(config.script, known, config.layers, device));
    made.out = made.hidden = script->outputs();
    made.graph_head = false;
  }
  return CatchTorch(
      "making the model", [&]() -> absl::StatusOr<std::unique_ptr<Model>> {
        return std::unique_ptr<Model>(new Model(
            made, known, std::move(script), Initializer(made.seed), device));
      });
}

absl::StatusOr<int64_t> Model::CountParameters(const ModelConfig& config,
                                               const GraphShape& shape) {
  MILLRACE_RETURN_IF_ERROR(ValidateModel(config, shape));
  const absl::StatusOr<int64_t> count =
      CatchTorch("counting parameters", [&]() -> absl::StatusOr<int64_t> {
        const Model model(config, shape, nullptr, Initializer::ShapesOnly(),
                          at::kMeta);
        int64_t sum = 0;
        for (const NamedTensor& named : model.parameters().parameters()) {
          sum += named.tensor.numel();
        }
        return sum;
      });
  // LibTorch only refuses sizes that overflow its integers or memory.
  return count.ok() ? *count : std::numeric_limits<int64_t>::max();
}

Model::Model(const ModelConfig& config, const GraphShape& shape,
             std::unique_ptr<ScriptModel> script, Initializer initializer,
             at::Device device)
    : config_(config),
      shape_(shape),
      needed_(shape.NeededTypes(config.layers)),
      parameters_(device),
      inputs_(shape.types.size()),
      script_(std::move(script)) {
  if (script_ == nullptr) {
    MakeLayers(initializer);
  } else {
    script_->AddTo(parameters_);
  }
  if (shape.members >= 0) {
    head_ = std::make_unique<GraphHead>(config, DropoutPlace(config.layers, 0),
                                        parameters_, initializer);
  }
  if (config.decoder != DecoderKind::kNone) {
    decoder_ =
        std::make_unique<Decoder>(config.decoder, config.edge_types,
                                  config.hidden, parameters_, initializer);
  }
}

void Model::MakeLayers(Initializer& initializer) {
  for (size_t t = 0; t < inputs_.size(); ++t) {
    if (!widens_inputs() || !needed_[0][t]) continue;
    inputs_[t] = std::make_unique<NodeInput>(shape_.types[t], config_.hidden,
                                             parameters_, initializer);
  }
  for (int i = 0; i < config_.layers; ++i) {
    layers_.push_back(MakeLayer(i, initializer));
  }
  MakeNorms();
}

std::unique_ptr<Layer> Model::MakeLayer(int layer, Initializer& initializer) {
  const ModelKindInfo& info = InfoOf(config_.kind);
  LayerSpec spec{.config = config_,
                 .shape = shape_,
                 .prefix = StrCat("convs.", layer),
                 .in = InputWidth(layer),
                 .out = OutputWidth(layer),
                 .last = layer + 1 == config_.layers};
  if (info.make_layer != nullptr) {
    return info.make_layer(spec, parameters_, initializer);
  }
  const std::string prefix = spec.prefix;
  std::vector<std::unique_ptr<Conv>> convs(shape_.relations.size());
  for (size_t r = 0; r < convs.size(); ++r) {
    const GraphShape::Relation& relation = shape_.relations[r];
    if (!Computes(layer, relation.lists)) continue;
    if (!shape_.homogeneous()) {
      spec.prefix = StrCat(prefix, ".convs.", relation.name);
    }
    spec.dropout_place = DropoutPlace(layer, shape_.types.size() + r);
    convs[r] = info.make_conv(spec, parameters_, initializer);
  }
  return std::make_unique<RelationLayer>(shape_.relations, std::move(convs));
}

void Model::MakeNorms() {
  for (int i = 0; i + 1 < config_.layers; ++i) {
    norms_.emplace_back(shape_.types.size());
    for (size_t t = 0; t < shape_.types.size(); ++t) {
      if (!Computes(i, static_cast<TypeIndex>(t))) continue;
      std::string prefix = StrCat("norms.", i);
      if (!shape_.homogeneous()) {
        absl::StrAppend(&prefix, ".", shape_.types[t].name);
      }
      norms_.back()[t] =
          Norm::Create(config_.norm, prefix, config_.hidden, parameters_);
    }
  }
}

bool Model::reads_original_ids() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const auto& input) {
    return input != nullptr && input->learned();
  });
}

at::Tensor Model::Input(TypeIndex type, const at::Tensor& x,
                        const at::Tensor& original_id) const {
  if (!needed_[0][type]) return {};
  return inputs_[type] == nullptr
             ? x
             : AsFloat(inputs_[type]->Forward(x, original_id));
}

int64_t Model::TargetRows(int layer, const SubgraphNodes& nodes) const {
  // Nodes at depth d are first seen in hop d - 1.
  const std::vector<uint32_t>& offsets = nodes.hop_offsets;
  const int hops = static_cast<int>(offsets.size()) - 2;
  return offsets[std::min(hops, config_.layers - 1 - layer) + 1];
}

uint64_t Model::OutputBytes(int layer, const Subgraph& graph) const {
  constexpr int64_t kValue = sizeof(float);
  uint64_t bytes = 0;
  for (TypeIndex t = 0; t < types(); ++t) {
    if (!Computes(layer, t)) continue;
    bytes = SaturatedSum(
        {bytes, SaturatedProduct({TargetRows(layer, graph.nodes[t]),
                                  OutputWidth(layer), kValue})});
  }
  return bytes;
}

uint64_t Model::LayerBytes(const Subgraph& graph) const {
  if (script_ != nullptr) return 0;
  uint64_t bytes = 0;
  for (int i = 0; i < config_.layers; ++i) {
    bytes = SaturatedSum({bytes, OutputBytes(i, graph)});
  }
  return bytes;
}

uint64_t Model::PassBytes(const Subgraph& graph) const {
  if (script_ != nullptr) return 0;
  uint64_t most = 0, before = 0;
  for (int i = 0; i < config_.layers; ++i) {
    const uint64_t bytes = OutputBytes(i, graph);
    most = std::max(most, SaturatedSum({before, bytes}));
    before = bytes;
  }
  return most;
}

void Model::TakeTargets(int layer, const Subgraph& graph,
                        LayerInput& input) const {
  const auto rows = [&](TypeIndex type) {
    return TargetRows(layer, graph.nodes[type]);
  };
  for (TypeIndex t = 0; t < types(); ++t) {
    input.target[t] = Computes(layer, t) ? input.source[t].narrow(0, 0, rows(t))
                                         : at::Tensor();
  }
  for (size_t r = 0; r < shape_.relations.size(); ++r) {
    const TypeIndex lists = shape_.relations[r].lists;
    if (!Computes(layer, lists)) continue;
    input.neighbors[r] = FirstRows(graph.neighbors[r], rows(lists));
  }
}

Precision Model::PrecisionOf(const Pass& pass) const {
  return pass.training ? config_.precision : Precision::kFloat32;
}

at::Tensor Model::Forward(const Subgraph& graph, const Pass& pass) {
  const ScopedPrecision precision(device(), PrecisionOf(pass));
  const at::Tensor rows = ForwardTypes(graph, pass)[shape_.seed_type];
  return head_ == nullptr ? rows
                          : AsFloat(head_->Forward(rows, graph.members, pass));
}

std::vector<at::Tensor> Model::ForwardTypes(const Subgraph& graph,
                                            const Pass& pass) {
  const ScopedPrecision precision(device(), PrecisionOf(pass));
  if (script_ != nullptr) return script_->Forward(graph, pass);
  LayerInput input{std::vector<at::Tensor>(shape_.types.size()),
                   std::vector<at::Tensor>(shape_.types.size()),
                   std::vector<Neighbors>(shape_.relations.size())};
  for (TypeIndex t = 0; t < types(); ++t) {
    input.source[t] = Input(t, graph.nodes[t].x, graph.nodes[t].original_id);
  }
  const bool drops = pass.training && config_.dropout > 0;
  for (int i = 0; i < config_.layers; ++i) {
    TakeTargets(i, graph, input);
    input.source = RunLayer(i, input, pass);
    if (!drops || i + 1 == config_.layers) continue;
    for (TypeIndex t = 0; t < types(); ++t) {
      at::Tensor& rows = input.source[t];
      if (!rows.defined()) continue;
      rows = Dropout(rows, config_.dropout, pass.dropout, DropoutPlace(i, t));
    }
  }
  return std::move(input.source);
}

std::vector<at::Tensor> Model::RunLayer(int layer, const LayerInput& input,
                                        const Pass& pass) {
  std::vector<at::Tensor> results = layers_[layer]->Forward(input, pass);
  const bool last = layer + 1 == config_.layers;
  for (size_t t = 0; t < results.size(); ++t) {
    at::Tensor& rows = results[t];
    rows = AsFloat(rows);
    if (!rows.defined()) {
      rows = input.target[t];
    } else if (!last) {
      Norm* norm = norms_[layer][t].get();
      if (norm != nullptr) rows = norm->Forward(rows, pass.training);
      rows = at::relu(rows);
    }
  }
  return results;
}

}  // namespace millrace
