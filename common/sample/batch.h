// SPDX-License-Identifier: Apache-2.0
// One batch: the sampled subgraph around its seeds, with columns.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/array.h"
#include "common/graph/schema.h"
#include "common/sample/job.h"

namespace millrace {

// Nodes of one type. Local ids are 0 .. count()-1, in the order of
// docs/determinism.md section 5; arrays are indexed by local id. If the request
// has a memory with a GPU, features may be there; see Array::device().
struct NodeBlock {
  // [hops + 2]. The nodes first seen at hop h - 1 (h = 0 for seeds) have local
  // ids hop_offsets[h] to hop_offsets[h + 1] - 1. The last entry is count().
  std::vector<uint32_t> hop_offsets;
  Array id;           // [n] uint32, or uint64 for 2^32 or more nodes
  Array tree;         // [n] uint32: position of the seed; disjoint jobs only
  Array original_id;  // [n] int64, if requested
  Array degree;       // [n] uint32, if requested
  Array feature;      // [n, d], if requested and the type has features
  // The first rows (LabelRows::kSeeds) or all; absent if the type has no labels
  // or they are not requested.
  Array label;

  uint32_t count() const {
    return hop_offsets.empty() ? 0 : hop_offsets.back();
  }
};

// The edges of one relation, as one CSR over the expanded nodes. These are of
// the type whose nodes own the lists (the destination for kIn, the source for
// kOut) and have local ids below hop_offsets[hops]; for the methods of
// EdgesOfAllNodes(), they are all nodes of the type. The edges of hop h belong
// to the nodes first seen at hop h - 1, except for those methods; see
// PlacesOfEdges(). If the request has a memory with a GPU, all arrays but
// `feature_row` may be there.
struct EdgeBlock {
  Array indptr;    // [expanded + 1] uint32
  Array neighbor;  // [e] uint32: local id of the neighbour, in pick order
  Array edge_id;   // [e] int64, if requested; -1 for SampleMethod::kPpr
  Array hop;       // [e] uint8: step of the walk; SampleMethod::kWalk only
  Array visits;    // [e] uint32; SampleMethod::kPpr only
  Array feature;   // [e, d], if requested
  // [e] uint64: row of the edge's features in the partition that owns its
  // destination; only with edge features.
  Array feature_row;
  // [hops + 1]. Empty unless `indptr` is on a GPU; then list_ends[h] is its
  // element at hop_offsets[h] of the nodes that own the lists.
  std::vector<uint32_t> list_ends;
  // [e]: the partition that `feature_row` is a row of. Empty if there is no
  // `feature_row`, and unless `indptr` is on a GPU, where FeatureOwners()
  // cannot read it.
  std::vector<uint32_t> feature_parts;

  int64_t edge_count() const { return neighbor.rows(); }
};

// The seeds of an edge job except the sources, which are in Batch::seed.
// Original ids are int64, local ids uint32. Columns that the seeds do not have
// are absent.
struct EdgeSeedBlock {
  RelationIndex relation = 0;
  Array dst;        // [n] original ids
  Array label;      // [n], as stored
  Array edge_type;  // [n] int32
  // Destinations of the negatives: given ones or NegativeMode::kTriplet
  // [n * k], kShared [k], or kBinary [pairs], whose sources are in
  // `negative_src`.
  Array negative_src;
  Array negative_dst;
  Array dst_local;
  Array negative_src_local;
  Array negative_local;  // local ids of negative_dst
  // [1] uint32: number of drawn negatives that are edges nevertheless; absent
  // if none were drawn.
  Array false_negatives;
};

// A value type; copies share the arrays. batch_arrays.h describes them.
struct Batch {
  // Returns a batch with the fields that are known before it is sampled,
  // without arrays or blocks.
  static Batch For(const ResolvedJob& job, uint32_t epoch, uint32_t index);

  uint32_t epoch = 0;
  uint32_t index = 0;
  SeedKind seed_kind = SeedKind::kNode;
  TypeIndex seed_type = 0;
  Direction direction = Direction::kIn;
  SampleMethod method = SampleMethod::kUniform;
  int hops = 0;
  bool disjoint = false;
  Array seed;                // [seeds] int64 original ids, in seed order
  Array seed_time;           // [seeds] int64; temporal jobs only
  Array seed_to_local;       // [seeds] uint32
  EdgeSeedBlock edge_seeds;  // SeedKind::kEdge only
  // [seeds * walks, length + 1] int32 local ids, -1 where a walk has ended;
  // SampleMethod::kWalk only.
  Array walks;
  std::vector<NodeBlock> nodes;  // per node type
  std::vector<EdgeBlock> edges;  // per relation

  int64_t seed_count() const { return seed.rows(); }
  // Total size of all arrays, in bytes.
  size_t total_bytes() const;
};

// For each edge of `relation`, its hop and the local id of the node that owns
// its list.
struct EdgePlaces {
  std::vector<uint8_t> hop;
  std::vector<uint32_t> owner;
};
EdgePlaces PlacesOfEdges(const Batch& batch, const Relation& relation,
                         const EdgeBlock& block);

// The type whose nodes a relation's lists belong to.
inline TypeIndex ListOwnerType(const Relation& relation, Direction direction) {
  return direction == Direction::kIn ? relation.dst : relation.src;
}
inline TypeIndex NeighborType(const Relation& relation, Direction direction) {
  return direction == Direction::kIn ? relation.src : relation.dst;
}

}  // namespace millrace
