// SPDX-License-Identifier: Apache-2.0
#include "client/nn/model.h"

#include <ATen/ops/relu.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/nn/gcn_conv.h"
#include "client/nn/sage_conv.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

absl::Status Validate(const ModelConfig& config) {
  if (config.kind != "sage" && config.kind != "gcn") {
    return absl::UnimplementedError(
        absl::StrCat("--model ", config.kind,
                     " does not exist in this version; use sage or gcn"));
  }
  if (config.layers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--layers is ", config.layers, ", below 1"));
  }
  if (config.hidden < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hidden is ", config.hidden, ", below 1"));
  }
  if (!(config.dropout >= 0.0 && config.dropout < 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dropout is ", config.dropout, ", not in [0, 1)"));
  }
  if (config.in < 1 || config.out < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model from ", config.in, " features to ", config.out,
                     " classes; both must be at least 1"));
  }
  return absl::OkStatus();
}

std::unique_ptr<Conv> MakeConv(const ModelConfig& config, int64_t in,
                               int64_t out, const std::string& prefix,
                               ParameterSet& parameters,
                               Initializer& initializer) {
  if (config.kind == "gcn") {
    return std::make_unique<GcnConv>(prefix, in, out, parameters, initializer);
  }
  return std::make_unique<SageConv>(prefix, in, out, parameters, initializer);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(
    const ModelConfig& config) {
  MILLRACE_RETURN_IF_ERROR(Validate(config));
  return CatchTorch("making the model",
                    [&]() -> absl::StatusOr<std::unique_ptr<Model>> {
                      return std::unique_ptr<Model>(new Model(config));
                    });
}

Model::Model(const ModelConfig& config) : config_(config) {
  Initializer initializer(config.seed);
  for (int i = 0; i < config.layers; ++i) {
    convs_.push_back(MakeConv(config, InputWidth(i), OutputWidth(i),
                              absl::StrCat("convs.", i), parameters_,
                              initializer));
  }
  for (int i = 0; i + 1 < config.layers; ++i) {
    norms_.push_back(Norm::Create(config.norm, absl::StrCat("norms.", i),
                                  config.hidden, parameters_));
  }
}

at::Tensor Model::Forward(const Subgraph& graph, const Pass& pass) {
  at::Tensor x = graph.x;
  const auto hops = static_cast<int>(graph.hop_offsets.size()) - 2;
  for (int i = 0; i < config_.layers; ++i) {
    const int depth = std::min(hops, config_.layers - 1 - i);
    const int64_t rows = graph.hop_offsets[depth + 1];
    x = Layer(i, x, x.narrow(0, 0, rows), FirstRows(graph.neighbors, rows),
              pass.training);
    if (pass.training && i + 1 < config_.layers && config_.dropout > 0) {
      x = Dropout(x, config_.dropout, pass.dropout, i);
    }
  }
  return x;
}

at::Tensor Model::Layer(int layer, const at::Tensor& source,
                        const at::Tensor& target, const Neighbors& neighbors,
                        bool training) {
  at::Tensor x = convs_[layer]->Forward(source, target, neighbors);
  if (layer + 1 == config_.layers) return x;
  if (norms_[layer] != nullptr) x = norms_[layer]->Forward(x, training);
  return at::relu(x);
}

}  // namespace millrace
