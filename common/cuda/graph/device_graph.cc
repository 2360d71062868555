// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/graph/device_graph.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/sample/batch.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kAlignment = 256;

constexpr char kCannotCopy[] = "cannot copy the graph to GPU memory";

// Lays columns out one after another in the memory of a device; columns in
// pinned memory stay there. Without memory, only counts their bytes.
class ColumnWriter {
 public:
  explicit ColumnWriter(ColumnPlace place, std::byte* memory = nullptr)
      : place_(place), memory_(memory) {}

  uint64_t bytes() const { return bytes_; }
  const absl::Status& status() const { return status_; }

  // Copies `size` bytes and returns where they are; null if there are none.
  const void* Copy(const void* from, uint64_t size) {
    if (size == 0) return nullptr;
    std::byte* to = memory_ == nullptr ? nullptr : memory_ + bytes_;
    bytes_ += RoundUp(size, kAlignment);
    if (to != nullptr && status_.ok()) {
      status_ = CudaStatus(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice),
                           kCannotCopy);
    }
    return to;
  }
  template <typename T>
  const T* Add(const Array& column) {
    return static_cast<const T*>(AddBytes(column));
  }
  IdColumn AddIds(const Array& ids) {
    return {AddBytes(ids), ids.dtype() == DType::kUint64};
  }

 private:
  const void* AddBytes(const Array& column) {
    if (place_ == ColumnPlace::kDevice) {
      return Copy(column.data(), column.total_bytes());
    }
    if (column.total_bytes() == 0 || memory_ == nullptr) return nullptr;
    const auto pointer = DevicePointer(column.data());
    if (!pointer.ok()) {
      status_.Update(pointer.status());
      return nullptr;
    }
    return *pointer;
  }

  const ColumnPlace place_;
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
                columns_.Copy(parts.data(), parts.size() * sizeof(PartLists))),
            .part_count = static_cast<int>(parts.size()),
            .neighbor_limit = store_.book(neighbors).node_count()};
  }

  PartLists AddLists(const NeighborLists& lists) {
    PartLists part;
    part.edge_count = lists.indices.rows();
    part.indptr = columns_.Add<int64_t>(lists.indptr);
    part.indices = columns_.AddIds(lists.indices);
    part.originals = lists.neighbor_original_id.present()
                         ? columns_.AddIds(lists.neighbor_original_id)
                         : part.indices;
    part.times = columns_.Add<int64_t>(lists.time);
    part.weight_sums = columns_.Add<uint64_t>(lists.weight_sum);
    part.edge_ids = columns_.Add<int64_t>(lists.edge_id);
    part.feature_rows = columns_.Add<int64_t>(lists.slot);
    return part;
  }

  const Store& store_;
  ColumnWriter& columns_;
  std::vector<std::vector<IdColumn>> originals_;  // [mapped partition][type]
};

// Writes the lists of both directions.
DirectedLists Write(const Store& store, ColumnWriter& columns) {
  GraphWriter writer(store, columns);
  DirectedLists lists;
  lists.in = writer.Add(Direction::kIn);
  lists.out = writer.Add(Direction::kOut);
  return lists;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGraph>> DeviceGraph::Create(
    std::shared_ptr<const Store> store, int device, ColumnPlace place) {
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  ColumnWriter counted(place);
  Write(*store, counted);
  MILLRACE_ASSIGN_OR_RETURN(
      DeviceBlock memory, AllocateDevice(device, counted.bytes(), "the graph"));
  ColumnWriter columns(place, memory.get());
  std::unique_ptr<DeviceGraph> graph(new DeviceGraph(
      std::move(store), device, counted.bytes(), std::move(memory)));
  graph->lists_ = Write(*graph->store_, columns);
  MILLRACE_RETURN_IF_ERROR(columns.status());
  // Copies of pageable memory may still be under way.
  MILLRACE_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), kCannotCopy));
  return graph;
}

Lists DeviceGraph::ListsOf(int partition, RelationIndex relation,
                           Direction direction) const {
  Lists all = lists(direction)[relation];
  if (all.part_count == 0) return all;
  const std::vector<int>& mapped = store_->mapped_partitions();
  all.parts += std::lower_bound(mapped.begin(), mapped.end(), partition) -
               mapped.begin();
  all.part_count = 1;
  return all;
}

}  // namespace millrace::cuda
