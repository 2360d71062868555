// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/aggregate.h"
#include "client/nn/conv.h"
#include "client/nn/dropout.h"
#include "client/nn/norm.h"
#include "client/nn/parameters.h"

namespace millrace {

struct ModelConfig {
  std::string kind = "sage";  // sage, gcn
  int64_t in = 0;             // width of the features
  int64_t hidden = 256;
  int64_t out = 0;  // classes
  int layers = 2;
  double dropout = 0.0;  // [0, 1)
  NormKind norm = NormKind::kNone;
  GcnNorm gcn_norm = GcnNorm::kFull;
  uint64_t seed = 1;
};

// One sampled subgraph as a model reads it: nodes by hop, seeds first.
struct Subgraph {
  at::Tensor x;  // [n, in] float
  // [hops + 2]: nodes first seen at hop h - 1 end at hop_offsets[h + 1].
  std::vector<uint32_t> hop_offsets;
  Neighbors neighbors;  // of the expanded nodes
};

struct Pass {
  bool training = false;
  DropoutKey dropout;  // read while training
};

// A stack of convolutions as PyG's BasicGNN: conv, norm, relu, dropout, and
// after the last conv nothing; tensors under PyG's names, so that
// torch_geometric.nn.GraphSAGE or GCN load them.
// Threads: one at a time.
class Model {
 public:
  // INVALID_ARGUMENT: a value out of range. UNIMPLEMENTED: another kind.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }
  bool weighs_neighbors() const { return convs_[0]->weighs_neighbors(); }

  // Rows of the seeds, [hop_offsets[1], out]. Layer i computes only nodes
  // within layers - 1 - i hops of a seed. Throws what LibTorch throws.
  at::Tensor Forward(const Subgraph& graph, const Pass& pass);

  // Layer i of Forward by itself, without dropout (layer-wise inference).
  at::Tensor Layer(int layer, const at::Tensor& source,
                   const at::Tensor& target, const Neighbors& neighbors,
                   bool training);

  // Width of the matrix that layer i reads.
  int64_t InputWidth(int layer) const {
    return layer == 0 ? config_.in : config_.hidden;
  }
  int64_t OutputWidth(int layer) const {
    return layer + 1 == config_.layers ? config_.out : config_.hidden;
  }

 private:
  explicit Model(const ModelConfig& config);

  const ModelConfig config_;
  ParameterSet parameters_;
  std::vector<std::unique_ptr<Conv>> convs_;
  std::vector<std::unique_ptr<Norm>> norms_;  // layers - 1; null: none
};

}  // namespace millrace
