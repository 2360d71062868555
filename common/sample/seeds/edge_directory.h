// SPDX-License-Identifier: Apache-2.0
// What drawing negatives asks of the owners of nodes: the second seam, beside
// NeighborSource, between the pure sampling code and partitions that may be
// mapped here or served elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"
#include "common/sample/live_watch.h"

namespace millrace {

class EdgeDirectory {
 public:
  virtual ~EdgeDirectory() = default;

  // The ids of original ids (in range), in their order. Errors as
  // NeighborSource::Expand.
  virtual absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) = 0;

  // Whether there is an edge of `relation` from src[i] to dst[i]. Errors as
  // NeighborSource::Expand.
  virtual absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) = 0;
};

// The direction of the lists in which edges of `relation` are looked up:
// in-lists where there are any.
inline Direction LookupDirection(const Relation& relation) {
  return relation.has_in ? Direction::kIn : Direction::kOut;
}

// Pairs of nodes that may be edges of a relation, by id. Views.
struct NodePairs {
  RelationIndex relation = 0;
  std::span<const uint64_t> src;
  std::span<const uint64_t> dst;
};

// What FindEdges takes at most for each pair, besides its arguments.
inline constexpr uint64_t kFindBytesPerPair = 48;

// HasEdges for edges whose list stands in `part` of `store` (mapped): the
// owner of the destinations, or of the sources (LookupDirection). Reads each
// long list once, however many pairs are of its node, and ends early with the
// errors of `watch`.
// INVALID_ARGUMENT: a node of another owner. DATA_LOSS: damaged lists.
absl::StatusOr<std::vector<uint8_t>> FindEdges(const Store& store, int part,
                                               const NodePairs& pairs,
                                               LiveWatch& watch);

}  // namespace millrace
