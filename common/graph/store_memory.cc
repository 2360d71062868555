// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

void Copy(Array& array) {
  if (!array.present()) return;
  Array copy = Array::Allocate(array.dtype(), array.shape());
  if (array.total_bytes() > 0) {
    std::memcpy(copy.mutable_data(), array.data(), array.total_bytes());
  }
  array = copy;
}

// Not the weights: draws read their sums.
void AddLists(NeighborLists& lists, std::vector<Array*>& arrays) {
  arrays.insert(arrays.end(), {&lists.indptr, &lists.indices, &lists.edge_id,
                               &lists.weight_sum, &lists.time, &lists.type,
                               &lists.slot, &lists.neighbor_original_id});
}

void AddContent(Partition& partition, Store::Content content,
                std::vector<Array*>& arrays) {
  for (NodeColumns& nodes : partition.nodes) {
    if (content == Store::Content::kFeatures) {
      arrays.push_back(&nodes.feature);
      continue;
    }
    arrays.insert(arrays.end(), {&nodes.original_id, &nodes.label, &nodes.time,
                                 &nodes.hotness, &nodes.lookup});
  }
  for (EdgeColumns& edges : partition.edges) {
    if (content == Store::Content::kFeatures) {
      arrays.push_back(&edges.feature);
    } else {
      AddLists(edges.in, arrays);
      AddLists(edges.out, arrays);
    }
  }
}

}  // namespace

absl::Status Store::LoadIntoMemory(Content content) {
  std::vector<Array*> arrays;
  for (const std::shared_ptr<Partition>& partition : parts_) {
    if (partition != nullptr) AddContent(*partition, content, arrays);
  }
  uint64_t bytes = 0;
  for (const Array* array : arrays) {
    if (array->present()) bytes += array->total_bytes();
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(content == Content::kGraph ? "--graph-memory ram"
                                             : "--feature-memory ram",
                  bytes, "use mmap, or serve fewer partitions on this host"));
  for (Array* array : arrays) Copy(*array);
  return absl::OkStatus();
}

}  // namespace millrace
