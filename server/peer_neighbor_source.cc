// SPDX-License-Identifier: Apache-2.0
#include "server/peer_neighbor_source.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/draw.h"
#include "server/owner_expand.h"

namespace millrace {
namespace {

// Memory that one pick of a hop costs at the peak: the pick itself, its place
// among the edges, and, if it is a new node, its share of the table of nodes.
constexpr uint64_t kBytesPerPick = 48;
constexpr uint64_t kBytesPerEdgeId = 16;
constexpr uint64_t kBytesPerNode = 24;  // grouped by owner

// Nodes drawn between two looks at the deadline.
constexpr size_t kChunk = 1 << 16;

// The nodes of one hop, by owner and frontier, and the owner of each.
struct Groups {
  std::vector<std::vector<OwnedFrontier>> owned;  // [owner][frontier]
  std::vector<std::vector<uint32_t>> owners;      // [frontier][node]
  std::vector<bool> busy;                         // owners with any node
};

Groups GroupByOwner(const Store& store, const DrawContext& context,
                    std::span<const Frontier> frontiers) {
  const int parts = store.parts();
  Groups groups;
  groups.busy.resize(parts);
  groups.owned.resize(parts);
  for (auto& owned : groups.owned) owned.resize(frontiers.size());
  groups.owners.resize(frontiers.size());
  for (size_t f = 0; f < frontiers.size(); ++f) {
    const Frontier& frontier = frontiers[f];
    const Relation& relation = store.schema().relations[frontier.relation];
    const PartitionBook& book =
        store.book(ListType(relation, context.direction));
    groups.owners[f].reserve(frontier.ids.size());
    for (size_t i = 0; i < frontier.ids.size(); ++i) {
      const int owner = book.Owner(frontier.ids[i]);
      groups.owners[f].push_back(static_cast<uint32_t>(owner));
      groups.busy[owner] = true;
      OwnedFrontier& owned = groups.owned[owner][f];
      owned.ids.push_back(frontier.ids[i]);
      if (!frontier.trees.empty()) owned.trees.push_back(frontier.trees[i]);
    }
  }
  return groups;
}

// Puts the picks of all owners into the order of the frontier.
void Merge(const std::vector<uint32_t>& owners, Groups& groups, size_t f,
           Picks& out) {
  struct Cursor {
    size_t node = 0;
    size_t pick = 0;
  };
  std::vector<Cursor> cursors(groups.owned.size());
  size_t total = 0;
  for (const auto& owned : groups.owned) {
    total += owned[f].picks.neighbors.size();
  }
  out.counts.reserve(owners.size());
  out.neighbors.reserve(total);
  for (const uint32_t owner : owners) {
    const Picks& picks = groups.owned[owner][f].picks;
    Cursor& at = cursors[owner];
    const uint32_t count = picks.counts[at.node++];
    out.counts.push_back(count);
    const auto first = picks.neighbors.begin() + at.pick;
    out.neighbors.insert(out.neighbors.end(), first, first + count);
    if (!picks.edge_ids.empty()) {
      const auto edge = picks.edge_ids.begin() + at.pick;
      out.edge_ids.insert(out.edge_ids.end(), edge, edge + count);
    }
    at.pick += count;
  }
}

// Sum of the degrees of the nodes that are mapped here.
uint64_t LocalDegrees(const Store& store, const DrawContext& context,
                      const Frontier& frontier) {
  const Relation& relation = store.schema().relations[frontier.relation];
  const PartitionBook& book = store.book(ListType(relation, context.direction));
  uint64_t sum = 0;
  for (const uint64_t id : frontier.ids) {
    const int owner = book.Owner(id);
    const Partition* partition = store.partition(owner);
    if (partition == nullptr) continue;
    const auto indptr = partition->edges[frontier.relation]
                            .lists(context.direction)
                            .indptr.As<int64_t>();
    const size_t row = id - book.begin(owner);
    if (row + 1 < indptr.size()) {
      sum += static_cast<uint64_t>(
          std::max<int64_t>(indptr[row + 1] - indptr[row], 0));
    }
  }
  return sum;
}

}  // namespace

absl::Status PeerNeighborSource::CheckLive(int hop) const {
  if (context_.IsCancelled()) {
    return absl::CancelledError(StrCat("the client gave up before hop ", hop));
  }
  if (absl::Now() >= deadline_) {
    return absl::DeadlineExceededError(
        StrCat("the deadline passed in hop ", hop));
  }
  return absl::OkStatus();
}

absl::Status PeerNeighborSource::ReserveHop(
    const DrawContext& context, std::span<const Frontier> frontiers) {
  const uint64_t per_pick =
      kBytesPerPick + (context.edge_ids ? kBytesPerEdgeId : 0);
  expected_picks_.clear();
  for (const Frontier& frontier : frontiers) {
    // What a fanout of -1 draws elsewhere shows when the answers are here.
    uint64_t picks =
        frontier.fanout >= 0
            ? frontier.ids.size() * static_cast<uint64_t>(frontier.fanout)
            : LocalDegrees(*core_.store, context, frontier);
    // A node stands once in a frontier, so no edge is picked twice.
    if (!context.replace && frontier.trees.empty()) {
      picks = std::min(
          picks,
          static_cast<uint64_t>(
              core_.store->schema().relations[frontier.relation].edge_count));
    }
    expected_picks_.push_back(picks);
    bytes_ += frontier.ids.size() * kBytesPerNode + picks * per_pick;
  }
  return reservation_.GrowTo(bytes_);
}

absl::Status PeerNeighborSource::Expand(const DrawContext& context,
                                        std::span<const Frontier> frontiers,
                                        std::span<Picks> picks) {
  MILLRACE_RETURN_IF_ERROR(CheckLive(context.hop));
  MILLRACE_RETURN_IF_ERROR(ReserveHop(context, frontiers));
  const Store& store = *core_.store;
  const auto draw = [&](int part, const Frontier& frontier,
                        Picks& out) -> absl::Status {
    for (size_t at = 0; at < frontier.ids.size(); at += kChunk) {
      if (at > 0) MILLRACE_RETURN_IF_ERROR(CheckLive(context.hop));
      Frontier chunk = frontier;
      const size_t count = std::min(kChunk, frontier.ids.size() - at);
      chunk.ids = frontier.ids.subspan(at, count);
      if (!chunk.trees.empty()) chunk.trees = frontier.trees.subspan(at, count);
      MILLRACE_RETURN_IF_ERROR(DrawNeighbors(store, part, context, chunk, out));
    }
    return absl::OkStatus();
  };
  if (store.parts() == 1) {
    for (size_t f = 0; f < frontiers.size(); ++f) {
      MILLRACE_RETURN_IF_ERROR(draw(0, frontiers[f], picks[f]));
    }
    return absl::OkStatus();
  }

  Groups groups = GroupByOwner(store, context, frontiers);
  std::vector<std::unique_ptr<OwnerExpand>> calls;
  for (int part = 0; part < store.parts(); ++part) {
    if (!groups.busy[part] || store.partition(part) != nullptr) continue;
    calls.push_back(std::make_unique<OwnerExpand>(core_, context_, deadline_,
                                                  context, frontiers, part,
                                                  groups.owned[part]));
    MILLRACE_RETURN_IF_ERROR(calls.back()->Start());
  }
  // Our own lists while the others are on their way.
  for (int part = 0; part < store.parts(); ++part) {
    if (!groups.busy[part] || store.partition(part) == nullptr) continue;
    for (size_t f = 0; f < frontiers.size(); ++f) {
      OwnedFrontier& owned = groups.owned[part][f];
      Frontier own = frontiers[f];
      own.ids = owned.ids;
      own.trees = owned.trees;
      MILLRACE_RETURN_IF_ERROR(draw(part, own, owned.picks));
    }
  }
  const absl::Time waiting = absl::Now();
  for (const auto& call : calls) MILLRACE_RETURN_IF_ERROR(call->Finish());
  peer_wait_ += absl::Now() - waiting;
  for (size_t f = 0; f < frontiers.size(); ++f) {
    Merge(groups.owners[f], groups, f, picks[f]);
    const uint64_t drawn = picks[f].neighbors.size();
    bytes_ += (std::max(drawn, expected_picks_[f]) - expected_picks_[f]) *
              kBytesPerPick;
  }
  return reservation_.GrowTo(bytes_);
}

}  // namespace millrace
