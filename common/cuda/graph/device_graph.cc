// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/graph/device_graph.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "common/base/status_macros.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/sample/batch.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kAlignment = 256;

// Lays columns out one after another. Without memory, only counts their bytes.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::byte* memory = nullptr) : memory_(memory) {}

  uint64_t bytes() const { return bytes_; }
  const absl::Status& status() const { return status_; }

  // Copies `size` bytes and returns where they are; null if there are none.
  const void* Add(const void* from, uint64_t size) {
    if (size == 0) return nullptr;
    std::byte* to = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    if (to != nullptr && status_.ok()) {
      status_ = CudaStatus(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice),
                           "cannot copy the graph to GPU memory");
    }
    return to;
  }
  const void* Add(const Array& column) {
    return Add(column.data(), column.total_bytes());
  }
  template <typename T>
  const T* AddColumn(const Array& column) {
    return static_cast<const T*>(Add(column));
  }
  IdColumn AddIds(const Array& ids) {
    return {Add(ids), ids.dtype() == DType::kUint64};
  }

 private:
  std::byte* const memory_;
  uint64_t bytes_ = 0;
  absl::Status status_;
};

class GraphWriter {
 public:
  GraphWriter(const Store& store, ColumnWriter& columns)
      : store_(store), columns_(columns) {
    for (const int p : store.mapped_partitions()) {
      std::vector<IdColumn>& originals = originals_.emplace_back();
      for (const NodeColumns& nodes : store.partition(p)->nodes) {
        originals.push_back(columns.AddIds(nodes.original_id));
      }
    }
  }

  std::vector<Lists> Add(Direction direction) {
    std::vector<Lists> lists;
    for (size_t r = 0; r < store_.schema().relations.size(); ++r) {
      lists.push_back(AddRelation(static_cast<RelationIndex>(r), direction));
    }
    return lists;
  }

 private:
  Lists AddRelation(RelationIndex r, Direction direction) {
    const Relation& relation = store_.schema().relations[r];
    const TypeIndex type = ListOwnerType(relation, direction);
    std::vector<PartLists> parts;
    for (size_t i = 0; i < originals_.size(); ++i) {
      const int p = store_.mapped_partitions()[i];
      const NeighborLists& lists =
          store_.partition(p)->edges[r].lists(direction);
      if (!lists.present()) continue;
      PartLists part = AddLists(lists);
      part.first_id = store_.book(type).begin(p);
      part.node_count = store_.book(type).end(p) - part.first_id;
      part.node_originals = originals_[i][type];
      parts.push_back(part);
    }
    const TypeIndex neighbors = NeighborType(relation, direction);
    return {.parts = static_cast<const PartLists*>(
                columns_.Add(parts.data(), parts.size() * sizeof(PartLists))),
            .part_count = static_cast<int>(parts.size()),
            .neighbor_limit = store_.book(neighbors).node_count()};
  }

  PartLists AddLists(const NeighborLists& lists) {
    PartLists part;
    part.edge_count = lists.indices.rows();
    part.indptr = columns_.AddColumn<int64_t>(lists.indptr);
    part.indices = columns_.AddIds(lists.indices);
    part.originals = lists.neighbor_original_id.present()
                         ? columns_.AddIds(lists.neighbor_original_id)
                         : part.indices;
    part.times = columns_.AddColumn<int64_t>(lists.time);
    part.weight_sums = columns_.AddColumn<uint64_t>(lists.weight_sum);
    part.edge_ids = columns_.AddColumn<int64_t>(lists.edge_id);
    part.feature_rows = columns_.AddColumn<int64_t>(lists.slot);
    return part;
  }

  const Store& store_;
  ColumnWriter& columns_;
  std::vector<std::vector<IdColumn>> originals_;  // [mapped partition][type]
};

}  // namespace

uint64_t DeviceGraph::SizeOf(const Store& store) {
  ColumnWriter columns;
  GraphWriter graph(store, columns);
  graph.Add(Direction::kIn);
  graph.Add(Direction::kOut);
  return columns.bytes();
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> DeviceGraph::Create(
    const Store& store, int device) {
  const uint64_t bytes = SizeOf(store);
  MILLRACE_ASSIGN_OR_RETURN(
      DeviceBlock memory,
      AllocateDevice(device, bytes, "holding the graph in GPU memory"));
  std::unique_ptr<DeviceGraph> graph(
      new DeviceGraph(device, bytes, std::move(memory)));
  ColumnWriter columns(graph->memory_.get());
  GraphWriter writer(store, columns);
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    graph->lists_[static_cast<int>(direction)] = writer.Add(direction);
  }
  MILLRACE_RETURN_IF_ERROR(columns.status());
  // Copies of pageable memory may still be under way.
  MILLRACE_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(),
                                      "cannot copy the graph to GPU memory"));
  return graph;
}

}  // namespace millrace::cuda
