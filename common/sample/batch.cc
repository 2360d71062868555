// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch.h"

#include <span>

namespace millrace {

size_t Batch::total_bytes() const {
  size_t bytes = seed.total_bytes() + seed_time.total_bytes() +
                 seed_to_local.total_bytes() + walks.total_bytes();
  for (const Array* array :
       {&edge_seeds.dst, &edge_seeds.label, &edge_seeds.edge_type,
        &edge_seeds.negative_src, &edge_seeds.negative_dst,
        &edge_seeds.dst_local, &edge_seeds.negative_src_local,
        &edge_seeds.negative_local}) {
    bytes += array->total_bytes();
  }
  for (const NodeBlock& block : nodes) {
    for (const Array* array : {&block.id, &block.tree, &block.original_id,
                               &block.degree, &block.feature, &block.label}) {
      bytes += array->total_bytes();
    }
  }
  for (const EdgeBlock& block : edges) {
    for (const Array* array :
         {&block.indptr, &block.neighbor, &block.edge_id, &block.hop,
          &block.visits, &block.feature, &block.feature_row}) {
      bytes += array->total_bytes();
    }
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
      batch.nodes[ListType(relation, batch.direction)].hop_offsets;
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
