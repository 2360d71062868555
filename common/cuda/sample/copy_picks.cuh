// SPDX-License-Identifier: Apache-2.0
// The last stage of a hop: what stands at the picked slots.
#pragma once

#include "common/cuda/sample/hop_step.cuh"

namespace millrace::cuda {

// Where picks go. Arrays that the batch does not have are null.
struct PickedColumns {
  uint64_t* ids = nullptr;           // [picks] of the neighbours
  uint32_t* trees = nullptr;         // [picks]
  int64_t* edge_ids = nullptr;       // of all edges of the relation
  uint64_t* feature_rows = nullptr;  // of all edges of the relation
  const uint64_t* edges = nullptr;   // edges of earlier hops
};

// A thread for each pick. A neighbour that is no node becomes node 0.
__global__ void __launch_bounds__(kMaxBlock)
    CopyPicks(HopStep step, PickedColumns to) {
  const uint64_t picks = *step.picks;
  for (uint64_t pick = ThreadOfGrid(); pick < picks; pick += ThreadsOfGrid()) {
    const uint64_t i = step.owner(pick);
    const PartLists& part = step.part(step.ranges[i]);
    const int64_t slot = step.slots[pick];
    uint64_t neighbor = part.indices[slot];
    if (neighbor >= step.lists.neighbor_limit) {
      Report(step.trouble, kDamagedNeighbor);
      neighbor = 0;
    }
    to.ids[pick] = neighbor;
    if (to.trees != nullptr) to.trees[pick] = step.frontier.tree(i);
    const uint64_t edge = *to.edges + pick;
    if (to.edge_ids != nullptr) to.edge_ids[edge] = part.edge_ids[slot];
    if (to.feature_rows != nullptr) {
      to.feature_rows[edge] = static_cast<uint64_t>(
          part.feature_rows == nullptr ? slot : part.feature_rows[slot]);
    }
  }
}

// Extends the relation's CSR by the nodes of the frontier: indptr[v + 1] is the
// end of the edges of the node with local id v. Without picks (`step.offsets`
// is null) they have no edges.
__global__ void __launch_bounds__(kMaxBlock)
    ExtendIndptr(HopStep step, const uint64_t* edges, uint32_t* indptr) {
  const uint64_t size = step.frontier.size();
  const uint64_t begin = step.frontier.bounds[0];
  const bool empty = step.offsets == nullptr || *step.picks == 0;
  for (uint64_t i = ThreadOfGrid(); i < size; i += ThreadsOfGrid()) {
    const uint64_t end = *edges + (empty ? 0 : step.offsets[i + 1]);
    indptr[begin + i + 1] = static_cast<uint32_t>(end);
  }
}

}  // namespace millrace::cuda
