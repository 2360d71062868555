// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/nn/aggregate.h"
#include "client/nn/decoder.h"
#include "client/nn/graph_shape.h"
#include "client/nn/model_kind.h"
#include "client/nn/norm.h"
#include "client/nn/precision.h"

namespace millrace {

inline constexpr int kMaxLayers = 255;

// Describes a model. Errors name its fields, with "model" for `kind`.
struct ModelConfig {
  ModelKind kind = ModelKind::kSage;
  std::string script = {};  // kScript: TorchScript file; see ScriptModel
  int64_t in = 0;           // width of a homogeneous graph's features
  int64_t hidden = 256;
  int64_t out = 0;  // classes or predicted values; for edge seeds: `hidden`
  int layers = 2;   // 1 to kMaxLayers; kEmbedding: 0
  double dropout = 0.0;  // [0, 1); also for attention weights
  NormKind norm = NormKind::kNone;
  // Only some kinds read these (see ModelKindInfo).
  Aggregation aggregation = Aggregation::kMean;
  int heads = 1;  // divides `hidden`
  int bases = 0;  // 0 if none
  GcnNorm gcn_norm = GcnNorm::kFull;
  int gin_mlp = 2;  // layers of each convolution's MLP, 1 or 2
  // Graph seeds: how a graph's row is computed from its nodes' rows, and
  // whether an MLP [hidden, hidden, out] follows; otherwise the last
  // convolution has `out` columns.
  Aggregation readout = Aggregation::kSum;
  bool graph_head = true;
  // Edge seeds: how a score is computed from the rows of the two ends.
  DecoderKind decoder = DecoderKind::kNone;
  int64_t edge_types = 1;  // for kDistMult
  uint64_t seed = 1;
  Precision precision = Precision::kFloat32;  // while training
};

// INVALID_ARGUMENT: a value is out of range.
// UNIMPLEMENTED: the kind does not work on graphs of this shape.
// RESOURCE_EXHAUSTED: a node type without features has too many nodes to learn
// embeddings for. All errors name the value and its limit.
absl::Status ValidateModel(const ModelConfig& config, const GraphShape& shape);

}  // namespace millrace
