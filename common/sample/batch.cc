// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch.h"

#include <span>

#include "common/sample/batch_arrays.h"

namespace millrace {

Batch Batch::For(const ResolvedJob& job, uint32_t epoch, uint32_t index) {
  Batch batch;
  batch.epoch = epoch;
  batch.index = index;
  batch.seed_kind = job.spec.seed_kind;
  batch.seed_type = job.seed_type;
  batch.direction = job.spec.direction;
  batch.method = job.spec.method;
  batch.hops = job.hops;
  batch.disjoint = job.spec.disjoint;
  if (batch.seed_kind == SeedKind::kEdge) {
    batch.edge_seeds.relation = job.seed_relation;
  }
  return batch;
}

size_t Batch::total_bytes() const {
  size_t bytes = 0;
  for (const BatchArray& array : BatchArrays()) {
    if (array.kind == ArrayKind::kHopOffsets) continue;  // not an Array
    const int count = CountOf(array.group, nodes.size(), edges.size());
    for (int i = 0; i < count; ++i) bytes += array.Get(*this, i).total_bytes();
  }
  return bytes;
}

EdgePlaces PlacesOfEdges(const Batch& batch, const Relation& relation,
                         const EdgeBlock& block) {
  EdgePlaces places;
  places.owner.resize(static_cast<size_t>(block.edge_count()));
  places.hop.resize(places.owner.size());
  const std::span<const uint32_t> indptr = block.indptr.As<uint32_t>();
  const std::vector<uint32_t>& hop_offsets =
      batch.nodes[ListOwnerType(relation, batch.direction)].hop_offsets;
  const bool by_hop = !EdgesOfAllNodes(batch.method);
  uint8_t hop = 0;
  for (uint32_t v = 0; v + 1 < indptr.size(); ++v) {
    while (by_hop && v >= hop_offsets[hop + size_t{1}]) ++hop;
    for (uint32_t e = indptr[v]; e < indptr[v + 1]; ++e) {
      places.owner[e] = v;
      places.hop[e] = hop;
    }
  }
  if (block.hop.present()) {
    const std::span<const uint8_t> steps = block.hop.As<uint8_t>();
    places.hop.assign(steps.begin(), steps.end());
  }
  return places;
}

}  // namespace millrace
