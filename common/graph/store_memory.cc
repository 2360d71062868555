// SPDX-License-Identifier: Apache-2.0
#include <cstring>

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

void CopyLists(NeighborLists& lists) {
  // Not the weights: draws read their sums.
  for (Array* array :
       {&lists.indptr, &lists.indices, &lists.edge_id, &lists.weight_sum,
        &lists.time, &lists.type, &lists.slot, &lists.neighbor_original_id}) {
    Copy(*array);
  }
}

}  // namespace

void Store::LoadIntoMemory(Content content) {
  for (const std::shared_ptr<Partition>& partition : parts_) {
    if (partition == nullptr) continue;
    for (NodeColumns& nodes : partition->nodes) {
      if (content == Content::kFeatures) {
        Copy(nodes.feature);
        continue;
      }
      for (Array* array : {&nodes.original_id, &nodes.label, &nodes.time,
                           &nodes.hotness, &nodes.lookup}) {
        Copy(*array);
      }
    }
    for (EdgeColumns& edges : partition->edges) {
      if (content == Content::kFeatures) {
        Copy(edges.feature);
      } else {
        CopyLists(edges.in);
        CopyLists(edges.out);
      }
    }
  }
}

}  // namespace millrace
