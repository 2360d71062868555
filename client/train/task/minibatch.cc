// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/minibatch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/task/labels.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Leaves the labels undefined if there is no label column.
absl::Status FillLabels(const NodeTensors& nodes, TaskKind task,
                        Minibatch& minibatch) {
  if (!nodes.label.defined()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor labels,
                            ReadLabels(task, nodes.label));
  return CatchTorch("reading labels", [&]() -> absl::Status {
    minibatch.labels = minibatch.seed_rows.defined()
                           ? labels.index_select(0, minibatch.seed_rows)
                           : labels.narrow(0, 0, minibatch.seeds);
    minibatch.labelled = CountLabelled(minibatch.labels);
    return absl::OkStatus();
  });
}

// Fills in all but the subgraph, on the CPU.
absl::Status FillSeeds(const Batch& batch, const BatchTensors& tensors,
                       const Task& task, Minibatch& minibatch) {
  minibatch.seeds = batch.seed_count();
  if (batch.seed_kind == SeedKind::kEdge) {
    MILLRACE_ASSIGN_OR_RETURN(minibatch.links,
                              MakeLinkBatch(batch, task.negatives));
    minibatch.labelled = minibatch.seeds;
    return absl::OkStatus();
  }
  const NodeTensors& seeds = tensors.nodes[batch.seed_type];
  if (batch.seed_count() != seeds.hop_offsets[1]) {
    minibatch.seed_rows = tensors.seed_to_local;
  }
  return FillLabels(seeds, task.kind, minibatch);
}

// If edges do not follow the hops, each layer but the last computes all nodes,
// so those that are not seeds count as one hop away.
std::vector<uint32_t> OffsetsOf(const Batch& batch,
                                std::vector<uint32_t> hop_offsets) {
  // All rows of a graph's nodes count.
  if (batch.seed_kind == SeedKind::kGraph) {
    return {0, hop_offsets.back(), hop_offsets.back()};
  }
  if (!EdgesOfAllNodes(batch.method)) return hop_offsets;
  return {0, hop_offsets[1], hop_offsets.back()};
}

// Moves what FillSeeds() filled in.
void SendSeeds(at::Device device, Minibatch& minibatch) {
  minibatch.seed_rows = Send(minibatch.seed_rows, device);
  minibatch.labels = Send(minibatch.labels, device);
  if (minibatch.links.has_value()) {
    minibatch.links = SendLinks(*minibatch.links, device);
  }
}

bool HasListsOnDevice(const BatchTensors& tensors) {
  return std::ranges::any_of(tensors.edges, [](const EdgeTensors& edges) {
    return edges.indptr.defined() && !edges.indptr.is_cpu();
  });
}

// Adds the self loops that the model needs, where the lists are.
void AddSelfLoops(const Model& model, BatchTensors& tensors) {
  if (!model.adds_self_loops()) return;
  const GraphShape& shape = model.shape();
  for (const GraphShape::Relation& relation : shape.relations) {
    EdgeTensors& edges = tensors.edges[relation.number];
    const Neighbors looped =
        WithSelfLoops({edges.indptr, edges.neighbor, {}, {}});
    edges.indptr = looped.indptr;
    edges.neighbor = looped.index;
    if (edges.list_ends.empty()) continue;
    std::vector<uint32_t> rows =
        tensors.nodes[shape.types[relation.lists].number].hop_offsets;
    rows.pop_back();
    edges.list_ends = ReadListEnds(looped, rows);
  }
}

// The lists of a relation on the model's device. Rows are nodes with the hop
// offsets `offsets`, in the batch `batch_offsets`.
Neighbors ListsOn(at::Device device, const EdgeTensors& edges,
                  const std::vector<uint32_t>& offsets,
                  const std::vector<uint32_t>& batch_offsets) {
  Neighbors lists{edges.indptr, edges.neighbor, {}, {}};
  if (lists.indptr.is_cpu()) return SendTo(device, lists, offsets);
  for (size_t hop = 0; hop < edges.list_ends.size(); ++hop) {
    lists.cuts.push_back({batch_offsets[hop], edges.list_ends[hop]});
  }
  return lists;
}

// Returns what the model reads, which CheckColumns() has found in the batch.
Subgraph MakeSubgraph(const Batch& batch, const BatchTensors& tensors,
                      const Model& model) {
  const GraphShape& shape = model.shape();
  const at::Device device = model.device();
  Subgraph graph;
  for (const GraphShape::Type& type : shape.types) {
    const NodeTensors& nodes = tensors.nodes[type.number];
    graph.nodes.push_back({AsFloat(Send(nodes.feature, device)),
                           Send(nodes.original_id, device),
                           OffsetsOf(batch, nodes.hop_offsets)});
  }
  for (const GraphShape::Relation& relation : shape.relations) {
    const EdgeTensors& edges = tensors.edges[relation.number];
    const TypeIndex type = shape.types[relation.lists].number;
    graph.neighbors.push_back(ListsOn(device, edges,
                                      graph.nodes[relation.lists].hop_offsets,
                                      tensors.nodes[type].hop_offsets));
    graph.edge_features.push_back(AsFloat(Send(edges.feature, device)));
  }
  if (shape.members >= 0) {
    const EdgeTensors& edges = tensors.edges[shape.members];
    graph.members = {
        Send(edges.indptr, device), Send(edges.neighbor, device), {}, {}};
  }
  if (model.weighs_neighbors()) {
    GcnWeights(model.config().gcn_norm, graph.nodes[0].hop_offsets.back(),
               Send(tensors.nodes[shape.types[0].number].degree, device),
               graph.neighbors[0]);
  }
  return graph;
}

absl::Status CheckColumns(const BatchTensors& tensors, const Model& model) {
  for (size_t t = 0; t < model.shape().types.size(); ++t) {
    const GraphShape::Type& type = model.shape().types[t];
    const NodeTensors& nodes = tensors.nodes[type.number];
    if (!model.Computes(-1, static_cast<TypeIndex>(t))) continue;
    if (type.features > 0 && !nodes.feature.defined()) {
      return WithReason(
          absl::FailedPreconditionError(
              StrCat("the batch has no features of node type ", type.name)),
          Reason{"batch_without_features"});
    }
    if (type.features == 0 && !nodes.original_id.defined()) {
      return absl::FailedPreconditionError(
          StrCat("the batch has no original ids of node type ", type.name,
                 ", whose embeddings are learned\nrequest them in the "
                 "batch's columns"));
    }
  }
  for (const GraphShape::Relation& relation : model.shape().relations) {
    if (!model.reads_edge_features() || relation.features == 0 ||
        tensors.edges[relation.number].feature.defined()) {
      continue;
    }
    return absl::FailedPreconditionError(
        StrCat("the batch has no features of relation ", relation.name,
               ", which the model reads\nrequest them in the batch's "
               "columns"));
  }
  return absl::OkStatus();
}

}  // namespace

void AskForColumns(const Model& model, Columns& columns) {
  columns.degrees = model.weighs_neighbors();
  columns.original_ids |= model.reads_original_ids();
  columns.edge_features = model.reads_edge_features();
}

uint64_t CopyBytes(const Batch& batch, const Model& model) {
  if (model.device().is_cpu()) return 0;
  constexpr int64_t kValue = sizeof(float);
  uint64_t bytes = 0;
  for (const GraphShape::Type& type : model.shape().types) {
    const Array& feature = batch.nodes[type.number].feature;
    if (!feature.on_host() && feature.dtype() == DType::kFloat32) continue;
    bytes = SaturatedSum(
        {bytes, SaturatedProduct({feature.element_count(), kValue})});
  }
  for (const GraphShape::Relation& relation : model.shape().relations) {
    const EdgeBlock& edges = batch.edges[relation.number];
    if (!edges.indptr.on_host()) continue;
    bytes = SaturatedSum(
        {bytes, edges.indptr.total_bytes(), edges.neighbor.total_bytes()});
  }
  return bytes;
}

at::Tensor Minibatch::OfSeeds(const at::Tensor& result) const {
  return seed_rows.defined() ? result.index_select(0, seed_rows) : result;
}

absl::StatusOr<Minibatch> MakeMinibatch(
    const Batch& batch, const Model& model, const Task& task,
    const std::function<void()>& begin_copies) {
  MILLRACE_ASSIGN_OR_RETURN(BatchTensors tensors,
                            ToTensors(batch, model.device().type()));
  MILLRACE_RETURN_IF_ERROR(CheckColumns(tensors, model));
  Minibatch minibatch;
  MILLRACE_RETURN_IF_ERROR(FillSeeds(batch, tensors, task, minibatch));
  MILLRACE_ASSIGN_OR_RETURN(
      minibatch.graph,
      CatchTorch(StrCat("reading a batch of ", minibatch.seeds, " seeds"),
                 [&]() -> absl::StatusOr<Subgraph> {
                   const bool by_device = HasListsOnDevice(tensors);
                   if (by_device && begin_copies != nullptr) begin_copies();
                   AddSelfLoops(model, tensors);
                   if (!by_device && begin_copies != nullptr) begin_copies();
                   SendSeeds(model.device(), minibatch);
                   return MakeSubgraph(batch, tensors, model);
                 }));
  return minibatch;
}

}  // namespace millrace
