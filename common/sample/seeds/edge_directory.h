// SPDX-License-Identifier: Apache-2.0
// Where drawing negatives looks up nodes and edges. Next to NeighborSource,
// this is the second interface between the pure sampling code and partitions,
// which may be mapped here or served elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/graph/store.h"
#include "common/sample/cancel_poller.h"

namespace millrace {

class EdgeDirectory {
 public:
  virtual ~EdgeDirectory() = default;

  // Returns the ids for these original ids, which must be in range, in the same
  // order. Fails as NeighborSource::Expand() does.
  virtual absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) = 0;

  // For each i, whether there is an edge of `relation` from src[i] to dst[i] (1
  // or 0). Fails as NeighborSource::Expand() does.
  virtual absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) = 0;
};

// The direction of the lists in which edges of `relation` are looked up:
// in-lists if it has any.
inline Direction LookupDirection(const Relation& relation) {
  return relation.has_in ? Direction::kIn : Direction::kOut;
}

// Pairs of nodes that may be edges of a relation, as views of their ids.
struct NodePairs {
  RelationIndex relation = 0;
  std::span<const uint64_t> src;
  std::span<const uint64_t> dst;
};

// Maximum memory that FindEdges() takes per pair, besides its arguments.
inline constexpr uint64_t kFindBytesPerPair = 48;

// Like EdgeDirectory::HasEdges(), for pairs whose lists are in partition
// `part`, which must be mapped. It must own the destinations, or the sources if
// the relation has no in-lists. Reads each long list once, however many pairs
// its node is in.
// INVALID_ARGUMENT: a node of another owner. DATA_LOSS: damaged lists.
// FAILED_PRECONDITION: no lists. Also the errors of `poller`.
absl::StatusOr<std::vector<uint8_t>> FindEdges(const Store& store, int part,
                                               const NodePairs& pairs,
                                               CancelPoller& poller);

}  // namespace millrace
