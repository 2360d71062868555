// SPDX-License-Identifier: Apache-2.0
#include "client/train/inference.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

int64_t MemoryBytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

// Neighbours other than the node itself, of each expanded node.
at::Tensor OtherNeighbors(const EdgeTensors& edges) {
  const int64_t rows = edges.indptr.size(0) - 1;
  at::Tensor others = at::empty({rows}, at::kInt);
  const int32_t* indptr = edges.indptr.const_data_ptr<int32_t>();
  const int32_t* neighbor = edges.neighbor.const_data_ptr<int32_t>();
  int32_t* counts = others.mutable_data_ptr<int32_t>();
  for (int64_t i = 0; i < rows; ++i) {
    const auto loops =
        std::count(neighbor + indptr[i], neighbor + indptr[i + 1],
                   static_cast<int32_t>(i));
    counts[i] = indptr[i + 1] - indptr[i] - static_cast<int32_t>(loops);
  }
  return others;
}

// As SampledWeights of aggregate.cc, where the subgraph is the whole graph:
// `others` are the whole graph's counts.
void WholeGraphWeights(const at::Tensor& others, Neighbors& lists) {
  lists.edge_weight = at::empty({lists.index.size(0)}, at::kFloat);
  const at::Tensor inverse_root = others.to(at::kDouble).add(1.0).rsqrt();
  const at::Tensor roots = inverse_root.to(at::kFloat);
  lists.self_weight = roots.mul(roots);
  const float* root = roots.const_data_ptr<float>();
  const int32_t* indptr = lists.indptr.const_data_ptr<int32_t>();
  const int32_t* index = lists.index.const_data_ptr<int32_t>();
  float* weight = lists.edge_weight.mutable_data_ptr<float>();
  for (int64_t i = 0; i < lists.rows(); ++i) {
    for (int32_t e = indptr[i]; e < indptr[i + 1]; ++e) {
      weight[e] = index[e] == i ? 0.0f : root[i] * root[index[e]];
    }
  }
}

}  // namespace

FullInference::FullInference(std::shared_ptr<BatchSource> source,
                             const JobSpec& job, Model& model,
                             Collectives& collectives,
                             const InferenceOptions& options)
    : source_(std::move(source)),
      model_(model),
      collectives_(collectives),
      options_(options) {
  job_.seed_type = job.seed_type;
  job_.direction = job.direction;
  job_.split.clear();
  job_.fanouts = {kAllNeighbors};
  job_.batch_size = options.chunk;
  job_.shuffle = false;
  nodes_ = source_->manifest().schema.node_types[0].count;
}

int64_t FullInference::BoundOf(int rank) const {
  if (!options_.all_ranks) return rank == 0 ? 0 : nodes_;
  const auto world = static_cast<int64_t>(collectives_.world());
  return nodes_ / world * rank + std::min<int64_t>(nodes_ % world, rank);
}

absl::Status FullInference::CheckMemory(int layers) const {
  int64_t width = 0;
  for (int i = 0; i < layers; ++i) {
    width = std::max(
        width, (i == 0 ? 0 : model_.InputWidth(i)) + model_.OutputWidth(i));
  }
  const auto bytes = nodes_ * width * static_cast<int64_t>(sizeof(float));
  if (bytes <= MemoryBytes()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("full inference keeps ", bytes, " bytes of layers for ", nodes_,
             " nodes in each trainer, but this host has ", MemoryBytes(),
             "\nuse --inference sampled"));
}

absl::StatusOr<std::unique_ptr<Loader>> FullInference::Load(
    const Columns& columns) const {
  std::vector<int64_t> seeds(static_cast<size_t>(end() - begin()));
  std::iota(seeds.begin(), seeds.end(), begin());
  LoaderOptions options;
  options.columns = columns;
  options.prefetch_batches = options_.prefetch_batches;
  options.prefetch_bytes = options_.prefetch_bytes;
  options.seeds = std::move(seeds);
  return Loader::Create(source_, job_, std::move(options));
}

absl::Status FullInference::RunChunk(int layer, const at::Tensor& input,
                                     const Batch& batch,
                                     at::Tensor& output) const {
  MILLRACE_ASSIGN_OR_RETURN(const BatchTensors tensors, ToTensors(batch));
  return CatchTorch("inference", [&]() -> absl::Status {
    const NodeTensors& nodes = tensors.nodes[0];
    const EdgeTensors& edges = tensors.edges[0];
    const int64_t rows = batch.seed_count();
    Neighbors lists{edges.indptr, edges.neighbor, {}, {}};
    if (others_.defined()) {
      WholeGraphWeights(others_.index_select(0, nodes.original_id), lists);
    } else if (model_.weighs_neighbors()) {
      GcnWeights(GcnNorm::kFull, nodes.original_id.size(0), nodes.degree,
                 lists);
    }
    if (lists.self_weight.defined()) {
      lists.self_weight = lists.self_weight.narrow(0, 0, rows);
    }
    const int64_t first = batch.seed.IntegerAt(0);
    at::Tensor source, target;
    if (layer == 0) {
      source = nodes.feature.to(at::kFloat);
      target = source.narrow(0, 0, rows);
    } else {
      source = input;
      target = input.narrow(0, first, rows);
      lists.indptr = lists.indptr.to(at::kLong);
      lists.index = nodes.original_id.index_select(0, lists.index);
    }
    output.narrow(0, first - begin(), rows)
        .copy_(model_.Layer(layer, source, target, lists, /*training=*/false));
    return absl::OkStatus();
  });
}

absl::StatusOr<at::Tensor> FullInference::RunLayer(int layer,
                                                   const at::Tensor& input) {
  at::Tensor output =
      at::empty({end() - begin(), model_.OutputWidth(layer)}, at::kFloat);
  if (begin() == end()) return output;
  Columns columns;
  columns.features = layer == 0;
  columns.labels = LabelRows::kNone;
  columns.original_ids = true;
  columns.degrees = model_.weighs_neighbors();
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                            Load(columns));
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader->Next());
    if (!step.has_value()) break;
    MILLRACE_RETURN_IF_ERROR(RunChunk(layer, input, *step->batch, output));
  }
  return output;
}

absl::StatusOr<at::Tensor> FullInference::Exchange(
    const at::Tensor& own) const {
  if (collectives_.world() == 1) return own;
  std::vector<int64_t> shape = own.sizes().vec();
  shape[0] = nodes_;
  at::Tensor all = at::empty(shape, own.options());
  for (int rank = 0; rank < collectives_.world(); ++rank) {
    const int64_t rows = BoundOf(rank + 1) - BoundOf(rank);
    if (rows == 0) continue;
    const at::Tensor part = all.narrow(0, BoundOf(rank), rows);
    if (rank == collectives_.rank()) part.copy_(own);
    MILLRACE_RETURN_IF_ERROR(collectives_.Broadcast(part, rank));
  }
  return all;
}

absl::Status FullInference::CountOthers() {
  Columns columns;
  columns.features = false;
  columns.labels = LabelRows::kNone;
  at::Tensor own = at::zeros({end() - begin()}, at::kInt);
  if (begin() != end()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                              Load(columns));
    while (true) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader->Next());
      if (!step.has_value()) break;
      MILLRACE_ASSIGN_OR_RETURN(const BatchTensors tensors,
                                ToTensors(*step->batch));
      own.narrow(0, step->batch->seed.IntegerAt(0) - begin(),
                 step->batch->seed_count())
          .copy_(OtherNeighbors(tensors.edges[0]));
    }
  }
  MILLRACE_ASSIGN_OR_RETURN(others_, Exchange(own));
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> FullInference::Run(int layers) {
  MILLRACE_RETURN_IF_ERROR(CheckMemory(layers));
  return CatchTorch("inference", [&]() -> absl::StatusOr<at::Tensor> {
    c10::NoGradGuard no_grad;
    if (model_.weighs_neighbors() && !others_.defined() &&
        model_.config().gcn_norm == GcnNorm::kSampled) {
      MILLRACE_RETURN_IF_ERROR(CountOthers());
    }
    at::Tensor rows, all;
    for (int i = 0; i < layers; ++i) {
      if (i > 0) {
        MILLRACE_ASSIGN_OR_RETURN(all, Exchange(rows));
      }
      MILLRACE_ASSIGN_OR_RETURN(rows, RunLayer(i, all));
    }
    return rows;
  });
}

absl::StatusOr<at::Tensor> FullInference::RunForAll(int layers) {
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor rows, Run(layers));
  return Exchange(rows);
}

}  // namespace millrace
