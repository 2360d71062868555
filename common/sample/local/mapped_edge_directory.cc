// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_edge_directory.h"

#include "common/base/status_macros.h"
#include "common/graph/owner_groups.h"
#include "common/sample/batch.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/seeds/resolve_seeds.h"

namespace millrace {

absl::StatusOr<std::vector<uint64_t>> MappedEdgeDirectory::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  return ResolveIds(store_, type, original_ids);
}

absl::StatusOr<std::vector<uint8_t>> MappedEdgeDirectory::HasEdges(
    RelationIndex relation, std::span<const uint64_t> src,
    std::span<const uint64_t> dst) {
  const Relation& info = store_.schema().relations[relation];
  const Direction direction = LookupDirection(info);
  const PartitionBook& book = store_.book(ListOwnerType(info, direction));
  const std::span<const uint64_t> owners =
      direction == Direction::kIn ? dst : src;
  std::vector<uint8_t> found(src.size());
  CancelPoller poller;
  for (const OwnerGroup& group :
       GroupByOwner(src.size(), store_.partition_count(),
                    [&](size_t i) { return book.Owner(owners[i]); })) {
    const std::vector<uint64_t> own_src = TakeAt(src, group.places);
    const std::vector<uint64_t> own_dst = TakeAt(dst, group.places);
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint8_t> own,
                              FindEdges(store_, group.partition,
                                        {relation, own_src, own_dst}, poller));
    PutAt<uint8_t>(own, group.places, found);
  }
  return found;
}

}  // namespace millrace
