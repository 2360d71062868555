// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/nn/aggregate.h"
#include "client/nn/decoder.h"
#include "client/nn/graph_shape.h"
#include "client/nn/norm.h"

namespace millrace {

inline constexpr int kMaxLayers = 255;

// A model by the names of the command line.
struct ModelConfig {
  // sage, gcn, gat, gin, rgcn; embedding: each node's own row, no layers;
  // script: what `script` holds
  std::string kind = "sage";
  std::string script;  // file of TorchScript; see ScriptModel
  int64_t in = 0;      // width of a homogeneous graph's features
  int64_t hidden = 256;
  int64_t out = 0;       // classes, or values predicted; edge seeds: `hidden`
  int layers = 2;        // 1 to kMaxLayers; embedding: 0
  double dropout = 0.0;  // [0, 1); of gat's attention weights too
  NormKind norm = NormKind::kNone;
  Aggregation aggregation = Aggregation::kMean;  // sage
  int heads = 1;                                 // gat; divides `hidden`
  int bases = 0;                                 // rgcn; 0: none
  GcnNorm gcn_norm = GcnNorm::kFull;
  int gin_mlp = 2;  // gin: layers of each convolution's MLP, 1 or 2
  // Graph seeds: how the rows of a graph's nodes become its row, and whether
  // an MLP [hidden, hidden, out] follows; without it the last convolution has
  // `out` columns.
  Aggregation readout = Aggregation::kSum;
  bool graph_head = true;
  // Edge seeds: how rows of two ends become a score.
  DecoderKind decoder = DecoderKind::kNone;
  int64_t edge_types = 1;  // of kDistMult
  uint64_t seed = 1;
};

// INVALID_ARGUMENT: a value out of range, no such kind. UNIMPLEMENTED: a kind
// that does not work on graphs of this shape. RESOURCE_EXHAUSTED: a node type
// without features has more nodes than embeddings are learned for. All name
// the option, the value and what to do.
absl::Status ValidateModel(const ModelConfig& config, const GraphShape& shape);

}  // namespace millrace
