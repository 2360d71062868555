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
// docs/determinism.md section 5; arrays are indexed by local id.
struct NodeBlock {
  // [hops + 2]: the nodes first seen at hop h - 1 (seeds: h = 0) are
  // hop_offsets[h] .. hop_offsets[h + 1] - 1; the last entry is count().
  std::vector<uint32_t> hop_offsets;
  Array id;           // [n] uint32, or uint64 for 2^32 nodes and more
  Array tree;         // [n] uint32: position of the seed; disjoint jobs only
  Array original_id;  // [n] int64, if asked for
  Array degree;       // [n] uint32, if asked for
  Array feature;      // [n, d], if asked for and the type has features
  // [n], or for LabelRows::kSeeds only the first rows; if the type has labels.
  Array label;

  uint32_t count() const {
    return hop_offsets.empty() ? 0 : hop_offsets.back();
  }
};

// Edges of one relation as one CSR over the nodes that were expanded: those
// of the list's type (destination for kIn, source for kOut) with local ids
// below hop_offsets[hops], or all of them (EdgesOfAllNodes). Edges of hop h are
// those of the nodes first seen at hop h - 1, except for the methods of
// EdgesOfAllNodes: see PlacesOfEdges.
struct EdgeBlock {
  Array indptr;    // [expanded + 1] uint32
  Array neighbor;  // [e] uint32: local id of the neighbour, in pick order
  Array edge_id;   // [e] int64, if asked for; -1 with SampleMethod::kPpr
  Array hop;       // [e] uint8: the step; SampleMethod::kWalk only
  Array visits;    // [e] uint32; SampleMethod::kPpr only
  Array feature;   // [e, d], if asked for
  // [e] uint64, if features are asked for: where the edge's feature is among
  // those of the partition that owns its destination.
  Array feature_row;

  int64_t edge_count() const { return neighbor.rows(); }
};

// What Batch does not have of edge seeds: Batch::seed has their sources. All
// original ids are int64 and all local ids uint32. Arrays are absent where the
// seeds do not have them.
struct EdgeSeedBlock {
  RelationIndex relation = 0;
  Array dst;        // [n] original ids
  Array label;      // [n], as stored
  Array edge_type;  // [n] int32
  // Original ids of destinations to which the sources have no edges: given or
  // NegativeMode::kTriplet [n * k], kShared [k], kBinary [pairs]. Only the last
  // have sources of their own, `negative_src`.
  Array negative_src;
  Array negative_dst;
  Array dst_local;
  Array negative_src_local;
  Array negative_local;  // local ids of negative_dst
  // [1] uint32: how many drawn negatives are edges all the same. Absent if none
  // were drawn.
  Array false_negatives;
};

// Value type; copies share the arrays. batch_arrays.h describes them.
struct Batch {
  // What is known of a batch before it is sampled. Without arrays or blocks.
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
  // Bytes of all arrays.
  size_t total_bytes() const;
};

// The hop of each edge of `relation` and the local id of the node whose list
// it is from.
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
