// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch.h"

#include <initializer_list>
#include <span>

namespace millrace {

namespace {

size_t TotalBytes(std::initializer_list<const Array*> arrays) {
  size_t bytes = 0;
  for (const Array* array : arrays) bytes += array->total_bytes();
  return bytes;
}

// These functions name every member of a struct, so that one that is added
// does not compile until it is looked at here.

size_t TotalBytes(const EdgeSeedBlock& seeds) {
  const auto& [relation, dst, label, edge_type, negative_src, negative_dst,
               dst_local, negative_src_local, negative_local, false_negatives] =
      seeds;
  return TotalBytes({&dst, &label, &edge_type, &negative_src, &negative_dst,
                     &dst_local, &negative_src_local, &negative_local,
                     &false_negatives});
}

size_t TotalBytes(const NodeBlock& block) {
  const auto& [hop_offsets, id, tree, original_id, degree, feature, label] =
      block;
  return TotalBytes({&id, &tree, &original_id, &degree, &feature, &label});
}

size_t TotalBytes(const EdgeBlock& block) {
  const auto& [indptr, neighbor, edge_id, hop, visits, feature, feature_row] =
      block;
  return TotalBytes(
      {&indptr, &neighbor, &edge_id, &hop, &visits, &feature, &feature_row});
}

}  // namespace

size_t Batch::total_bytes() const {
  const auto& [epoch, index, seed_kind, seed_type, direction, method, hops,
               disjoint, seed, seed_time, seed_to_local, edge_seeds, walks,
               nodes, edges] = *this;
  size_t bytes = TotalBytes({&seed, &seed_time, &seed_to_local, &walks}) +
                 TotalBytes(edge_seeds);
  for (const NodeBlock& block : nodes) bytes += TotalBytes(block);
  for (const EdgeBlock& block : edges) bytes += TotalBytes(block);
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
