// SPDX-License-Identifier: Apache-2.0
#include "client/train/minibatch.h"

#include <ATen/ops/full.h>

#include <utility>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/labels.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

absl::Status FillLabels(const NodeTensors& nodes, Minibatch& minibatch) {
  if (!nodes.label.defined()) {
    minibatch.labels = at::full({minibatch.seeds}, kUnlabelled, at::kLong);
    return absl::OkStatus();
  }
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor labels, ClassLabels(nodes.label));
  return CatchTorch("reading labels", [&]() -> absl::Status {
    minibatch.labels = minibatch.seed_rows.defined()
                           ? labels.index_select(0, minibatch.seed_rows)
                           : labels.narrow(0, 0, minibatch.seeds);
    minibatch.labelled = minibatch.labels.ne(kUnlabelled).sum().item().toLong();
    return absl::OkStatus();
  });
}

}  // namespace

at::Tensor Minibatch::OfSeeds(const at::Tensor& result) const {
  return seed_rows.defined() ? result.index_select(0, seed_rows) : result;
}

absl::StatusOr<Minibatch> MakeMinibatch(const Batch& batch,
                                        const Model& model) {
  MILLRACE_ASSIGN_OR_RETURN(BatchTensors tensors, ToTensors(batch));
  NodeTensors& nodes = tensors.nodes[0];
  EdgeTensors& edges = tensors.edges[0];
  if (!nodes.feature.defined()) {
    return absl::FailedPreconditionError(
        "the batch has no features\nimport the dataset with --features F.npy, "
        "and do not use --no-features");
  }
  Minibatch minibatch;
  minibatch.seeds = batch.seed_count();
  if (batch.seed_count() != nodes.hop_offsets[1]) {
    minibatch.seed_rows = tensors.seed_to_local;
  }
  MILLRACE_RETURN_IF_ERROR(CatchTorch("reading a batch", [&] {
    Subgraph& graph = minibatch.graph;
    graph.x = nodes.feature.to(at::kFloat);
    graph.neighbors = {edges.indptr, edges.neighbor, {}, {}};
    if (model.weighs_neighbors()) {
      GcnWeights(model.config().gcn_norm, graph.x.size(0), nodes.degree,
                 graph.neighbors);
    }
    graph.hop_offsets = std::move(nodes.hop_offsets);
    return absl::OkStatus();
  }));
  MILLRACE_RETURN_IF_ERROR(FillLabels(nodes, minibatch));
  return minibatch;
}

}  // namespace millrace
