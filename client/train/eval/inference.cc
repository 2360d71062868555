// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/inference.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/eval/evaluator.h"
#include "client/train/task/batch_loop.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Counts the neighbours of each expanded node other than the node itself.
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

// Does what SampledWeights() in aggregate.cc does for a subgraph, but for the
// whole graph, whose counts are `others`.
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
                             const InferenceOptions& options,
                             const Accelerator& accelerator)
    : source_(std::move(source)),
      model_(model),
      collectives_(collectives),
      options_(options),
      chunks_(MakeEvaluationCheck(accelerator)) {
  job_.direction = job.direction;
  job_.split.clear();
  job_.batch_size = options.chunk;
  job_.shuffle = false;
}

int64_t FullInference::CountOf(TypeIndex type) const {
  return source_->manifest().schema.node_types[type].count;
}

int64_t FullInference::BoundOf(TypeIndex type, int rank) const {
  const int64_t nodes = CountOf(type);
  if (!options_.all_ranks) return rank == 0 ? 0 : nodes;
  const auto world = static_cast<int64_t>(collectives_.world());
  return nodes / world * rank + std::min<int64_t>(nodes % world, rank);
}

uint64_t FullInference::MatrixBytes(int layer, int begin_rank, int end_rank,
                                    int copies) const {
  const int64_t width =
      layer < 0 ? model_.InputWidth(0) : model_.OutputWidth(layer);
  const auto types = static_cast<TypeIndex>(model_.shape().types.size());
  constexpr int64_t kValue = sizeof(float);
  uint64_t bytes = 0;
  for (TypeIndex t = 0; t < types; ++t) {
    if (!model_.Computes(layer, t)) continue;
    const int64_t rows = BoundOf(t, end_rank) - BoundOf(t, begin_rank);
    bytes =
        SaturatedSum({bytes, SaturatedProduct({rows, width, kValue, copies})});
  }
  return bytes;
}

// The ranks exchange their rows before each layer but the first and, with
// `for_all`, at the end. Each keeps its own rows until it has those of all
// nodes. A single rank has them already.
uint64_t FullInference::PeakBytes(int layers, bool for_all, int holders,
                                  int workers) const {
  const int rank = collectives_.rank();
  const int world = collectives_.world();
  const auto own = [&](int layer) {
    return MatrixBytes(layer, rank, rank + 1, workers);
  };
  uint64_t peak = own(layers - 1);
  for (int i = 0; i <= layers; ++i) {
    const bool exchanges = i < layers ? i > 0 : for_all;
    const uint64_t all = exchanges ? MatrixBytes(i - 1, 0, world, holders) : 0;
    const uint64_t sent = exchanges && world > 1 ? own(i - 1) : 0;
    const uint64_t computed = i < layers ? own(i) : 0;
    peak = std::max(peak, SaturatedSum({all, std::max(sent, computed)}));
  }
  return peak;
}

MemoryNeed FullInference::MemoryNeeded(int layers, bool for_all) const {
  const int ranks = options_.ranks_on_host;
  return {.process = PeakBytes(layers, for_all, 1, 1),
          .host = PeakBytes(layers, for_all, /*holders=*/ranks,
                            /*workers=*/options_.all_ranks ? ranks : 1)};
}

absl::Status FullInference::CheckMemory(int layers, bool for_all) const {
  return WithReason(
      millrace::CheckMemory(
          StrCat("full inference with layers of ", CountOf(seed_type()),
                 " nodes in ", options_.ranks_on_host,
                 options_.ranks_on_host == 1 ? " trainer" : " trainers"),
          MemoryNeeded(layers, for_all)),
      Reason{"inference_too_large"});
}

template <typename Use>
absl::Status FullInference::ForEachChunk(const std::string& what,
                                         TypeIndex type, int32_t fanout,
                                         const Columns& columns,
                                         Use&& use) const {
  const int64_t begin = BoundOf(type, collectives_.rank());
  const int64_t end = BoundOf(type, collectives_.rank() + 1);
  if (begin == end) return absl::OkStatus();
  std::vector<int64_t> seeds(static_cast<size_t>(end - begin));
  std::iota(seeds.begin(), seeds.end(), begin);
  JobSpec job = job_;
  job.fanouts = {fanout};
  job.seed_type = source_->manifest().schema.node_types[type].name;
  LoaderOptions options;
  options.columns = columns;
  options.prefetch_batches = options_.prefetch_batches;
  options.prefetch_bytes = options_.prefetch_bytes;
  options.memory = options_.memory;
  options.seeds.emplace().ids = std::move(seeds);
  return ForEachBatch(source_, job, std::move(options),
                      collectives_.rank() == 0 ? what : "", model_.device(),
                      [&](const Batch& batch) -> absl::Status {
                        return use(batch, batch.seed.IntegerAt(0) - begin);
                      });
}

// Lists are computed with on the CPU.
absl::StatusOr<BatchTensors> FullInference::TensorsOf(
    const Batch& batch) const {
  MILLRACE_ASSIGN_OR_RETURN(BatchTensors tensors,
                            ToTensors(batch, model_.device().type()));
  return CatchTorch("inference", [&]() -> absl::StatusOr<BatchTensors> {
    for (EdgeTensors& edges : tensors.edges) {
      if (edges.indptr.is_cpu()) continue;
      edges.indptr = HostCopy(edges.indptr);
      edges.neighbor = HostCopy(edges.neighbor);
    }
    return std::move(tensors);
  });
}

Neighbors FullInference::ListsOf(const NodeTensors& nodes,
                                 const EdgeTensors& edges) const {
  Neighbors lists{edges.indptr, edges.neighbor, {}, {}};
  if (model_.adds_self_loops()) return WithSelfLoops(lists);
  if (!model_.weighs_neighbors()) return lists;
  if (others_.defined()) {
    WholeGraphWeights(others_.index_select(0, nodes.original_id), lists);
  } else {
    GcnWeights(GcnNorm::kFull, nodes.original_id.size(0), nodes.degree, lists);
  }
  lists.self_weight = lists.self_weight.narrow(0, 0, lists.rows());
  return lists;
}

LayerInput FullInference::ChunkOf(int layer, TypeIndex type,
                                  const PerType& input, int64_t first,
                                  const BatchTensors& tensors) const {
  const size_t types = tensors.nodes.size();
  LayerInput chunk{PerType(types), PerType(types),
                   std::vector<Neighbors>(tensors.edges.size())};
  const at::Device device = model_.device();
  const bool whole = ReadsWholeInput(layer);
  for (size_t t = 0; t < types; ++t) {
    const auto index = static_cast<TypeIndex>(t);
    if (!model_.Computes(layer - 1, index)) continue;
    const NodeTensors& nodes = tensors.nodes[t];
    if (layer == 0) {
      chunk.source[t] =
          model_.Input(index, AsFloat(Send(nodes.feature, device)),
                       Send(nodes.original_id, device));
    } else {
      chunk.source[t] =
          whole ? input[t]
                : Send(input[t].index_select(0, nodes.original_id), device);
    }
  }
  for (size_t r = 0; r < tensors.edges.size(); ++r) {
    const GraphShape::Relation& relation = model_.shape().relations[r];
    if (relation.lists != type) continue;
    Neighbors lists = ListsOf(tensors.nodes[type], tensors.edges[r]);
    if (whole) {
      lists.indptr = lists.indptr.to(at::kLong);
      lists.index = tensors.nodes[relation.neighbors].original_id.index_select(
          0, lists.index);
    }
    chunk.neighbors[r] = SendTo(device, lists, {});
  }
  const int64_t rows = tensors.seed_to_local.size(0);
  chunk.target[type] = chunk.source[type].narrow(0, whole ? first : 0, rows);
  return chunk;
}

absl::Status FullInference::CheckChunk(int layer, const BatchTensors& tensors) {
  constexpr int64_t kValue = sizeof(float);
  const int64_t rows = tensors.seed_to_local.size(0);
  int64_t nodes = 0;
  for (size_t t = 0; t < tensors.nodes.size(); ++t) {
    if (!model_.Computes(layer - 1, static_cast<TypeIndex>(t))) continue;
    nodes += tensors.nodes[t].original_id.size(0);
  }
  const int64_t copied = ReadsWholeInput(layer) ? 0 : nodes;
  return chunks_.Check(
      StrCat("inference on a batch of ", rows, " nodes and their ",
             nodes - rows, " neighbours"),
      SaturatedSum(
          {SaturatedProduct({copied, model_.InputWidth(layer), kValue}),
           SaturatedProduct({rows, model_.OutputWidth(layer), kValue})}));
}

absl::Status FullInference::RunChunk(int layer, TypeIndex type,
                                     const PerType& input, const Batch& batch,
                                     const at::Tensor& output) {
  MILLRACE_ASSIGN_OR_RETURN(const BatchTensors tensors, TensorsOf(batch));
  MILLRACE_RETURN_IF_ERROR(CheckChunk(layer, tensors));
  return CatchTorch("inference", [&]() -> absl::Status {
    const LayerInput chunk =
        ChunkOf(layer, type, input, batch.seed.IntegerAt(0), tensors);
    output.copy_(model_.RunLayer(layer, chunk, Pass{})[type]);
    return absl::OkStatus();
  });
}

absl::StatusOr<at::Tensor> FullInference::RunLayer(int layer, TypeIndex type,
                                                   const PerType& input) {
  const int64_t rows = BoundOf(type, collectives_.rank() + 1) -
                       BoundOf(type, collectives_.rank());
  at::Tensor output = at::empty({rows, model_.OutputWidth(layer)}, at::kFloat);
  Columns columns;
  columns.features = layer == 0;
  columns.labels = LabelRows::kNone;
  columns.original_ids = true;
  columns.degrees = model_.weighs_neighbors();
  const std::string what =
      StrCat("inference, layer ", layer + 1, " of ", model_.config().layers);
  MILLRACE_RETURN_IF_ERROR(ForEachChunk(
      what, type, kAllNeighbors, columns, [&](const Batch& batch, int64_t row) {
        return RunChunk(layer, type, input, batch,
                        output.narrow(0, row, batch.seed_count()));
      }));
  return output;
}

absl::StatusOr<at::Tensor> FullInference::RunInput(TypeIndex type) {
  const int64_t rows = BoundOf(type, collectives_.rank() + 1) -
                       BoundOf(type, collectives_.rank());
  at::Tensor output = at::empty({rows, model_.InputWidth(0)}, at::kFloat);
  Columns columns;
  columns.labels = LabelRows::kNone;
  columns.original_ids = true;
  MILLRACE_RETURN_IF_ERROR(ForEachChunk(
      "inference, features", type, 0, columns,
      [&](const Batch& batch, int64_t row) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(const BatchTensors tensors, TensorsOf(batch));
        const NodeTensors& nodes = tensors.nodes[type];
        output.narrow(0, row, batch.seed_count())
            .copy_(model_.Input(type,
                                AsFloat(Send(nodes.feature, model_.device())),
                                Send(nodes.original_id, model_.device())));
        return absl::OkStatus();
      }));
  return output;
}

absl::StatusOr<at::Tensor> FullInference::Exchange(
    TypeIndex type, const at::Tensor& own) const {
  if (collectives_.world() == 1) return own;
  std::vector<int64_t> shape = own.sizes().vec();
  shape[0] = CountOf(type);
  at::Tensor all = at::empty(shape, own.options());
  for (int rank = 0; rank < collectives_.world(); ++rank) {
    const int64_t begin = BoundOf(type, rank);
    const int64_t rows = BoundOf(type, rank + 1) - begin;
    if (rows == 0) continue;
    const at::Tensor part = all.narrow(0, begin, rows);
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
  MILLRACE_RETURN_IF_ERROR(ForEachChunk(
      "inference, degrees", seed_type(), kAllNeighbors, columns,
      [this, &own](const Batch& batch, int64_t row) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(const BatchTensors tensors, TensorsOf(batch));
        own.narrow(0, row, batch.seed_count())
            .copy_(OtherNeighbors(tensors.edges[0]));
        return absl::OkStatus();
      }));
  MILLRACE_ASSIGN_OR_RETURN(others_, Exchange(seed_type(), own));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> FullInference::RunTypes(int layers) {
  return CatchTorch("inference", [&]() -> absl::StatusOr<PerType> {
    c10::NoGradGuard no_grad;
    if (model_.weighs_neighbors() && !others_.defined() &&
        model_.config().gcn_norm == GcnNorm::kSampled) {
      MILLRACE_RETURN_IF_ERROR(CountOthers());
    }
    const auto types = static_cast<TypeIndex>(model_.shape().types.size());
    const GraphShape& shape = model_.shape();
    PerType own(types);
    for (TypeIndex t = 0; layers == 0 && t < types; ++t) {
      if (!shape.IsOutput(t)) continue;
      MILLRACE_ASSIGN_OR_RETURN(own[t], RunInput(t));
    }
    for (int i = 0; i < layers; ++i) {
      PerType all(types);
      for (TypeIndex t = 0; t < types; ++t) {
        if (i == 0 || !model_.Computes(i - 1, t)) continue;
        MILLRACE_ASSIGN_OR_RETURN(all[t], Exchange(t, own[t]));
        own[t].reset();
      }
      for (TypeIndex t = 0; t < types; ++t) {
        const bool wanted = i + 1 < layers || shape.IsOutput(t);
        if (!wanted || !model_.Computes(i, t)) continue;
        MILLRACE_ASSIGN_OR_RETURN(own[t], RunLayer(i, t, all));
      }
    }
    return own;
  });
}

absl::StatusOr<at::Tensor> FullInference::Run(int layers) {
  MILLRACE_ASSIGN_OR_RETURN(const PerType own, RunTypes(layers));
  return own[seed_type()];
}

absl::StatusOr<at::Tensor> FullInference::RunForAll(int layers) {
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor rows, Run(layers));
  return Exchange(seed_type(), rows);
}

absl::StatusOr<std::vector<at::Tensor>> FullInference::RunForAllTypes() {
  MILLRACE_ASSIGN_OR_RETURN(PerType rows, RunTypes(model_.config().layers));
  for (size_t t = 0; t < rows.size(); ++t) {
    if (!rows[t].defined()) continue;
    MILLRACE_ASSIGN_OR_RETURN(rows[t],
                              Exchange(static_cast<TypeIndex>(t), rows[t]));
  }
  return rows;
}

}  // namespace millrace
