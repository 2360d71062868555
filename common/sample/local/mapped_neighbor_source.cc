// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_neighbor_source.h"

#include <vector>

#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/draw/draw.h"
#include "common/sample/list_lengths.h"

namespace millrace {
namespace {

// Minimum memory per pick: the neighbour's id and its position in the batch.
constexpr uint64_t kMinBytesPerPick = 12;
constexpr uint64_t kManyPicks = 1 << 22;

}  // namespace

absl::Status MappedNeighborSource::Expand(const DrawContext& context,
                                          std::span<const Frontier> frontiers,
                                          std::span<Picks> picks) {
  for (size_t i = 0; i < frontiers.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckHop(context, frontiers[i]));
    MILLRACE_RETURN_IF_ERROR(ExpandOne(context, frontiers[i], picks[i]));
  }
  return absl::OkStatus();
}

absl::Status MappedNeighborSource::Reserve(uint64_t bytes) {
  return CheckMemory("a batch of walks", bytes,
                     "use a smaller batch size, or fewer or shorter walks");
}

// If there may be many picks, counts them before they are drawn.
absl::Status MappedNeighborSource::CheckHop(const DrawContext& context,
                                            const Frontier& frontier) const {
  const auto edges = static_cast<uint64_t>(
      store_.schema().relations[frontier.relation].edge_count);
  const uint64_t most =
      frontier.fanout == kAllNeighbors
          ? edges * (frontier.trees.empty() ? 1 : frontier.ids.size())
          : frontier.ids.size() * static_cast<uint64_t>(frontier.fanout);
  if (most < kManyPicks) return absl::OkStatus();
  const uint64_t picks = CountPicks(context, frontier);
  return CheckMemory(StrCat("hop ", context.hop, " of a batch with ", picks,
                            " neighbours of ", frontier.ids.size(), " nodes"),
                     picks * kMinBytesPerPick,
                     "use a smaller batch size or fanouts");
}

// Returns an upper bound if lists have entries that are too late or excluded.
uint64_t MappedNeighborSource::CountPicks(const DrawContext& context,
                                          const Frontier& frontier) const {
  const Relation& relation = store_.schema().relations[frontier.relation];
  const PartitionBook& book =
      store_.book(ListOwnerType(relation, context.direction));
  std::vector<ListLengths> lengths;  // [partition]
  for (int part = 0; part < store_.partition_count(); ++part) {
    lengths.emplace_back(store_, part, frontier.relation, context.direction);
  }
  uint64_t picks = 0;
  for (const uint64_t id : frontier.ids) {
    picks += static_cast<uint64_t>(MaxPicks(lengths[book.Owner(id)].Of(id),
                                            frontier.fanout, context.replace));
  }
  return picks;
}

absl::Status MappedNeighborSource::ExpandOne(const DrawContext& context,
                                             const Frontier& frontier,
                                             Picks& picks) const {
  const Relation& relation = store_.schema().relations[frontier.relation];
  const PartitionBook& book =
      store_.book(ListOwnerType(relation, context.direction));
  // Runs of nodes with one owner are drawn together.
  size_t begin = 0;
  while (begin < frontier.ids.size()) {
    const int owner = book.Owner(frontier.ids[begin]);
    size_t end = book.partition_count() == 1 ? frontier.ids.size() : begin + 1;
    while (end < frontier.ids.size() &&
           book.Owner(frontier.ids[end]) == owner) {
      ++end;
    }
    MILLRACE_RETURN_IF_ERROR(DrawNeighbors(
        store_, owner, context, frontier.Part(begin, end - begin), picks));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace millrace
