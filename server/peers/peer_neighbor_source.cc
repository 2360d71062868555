// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_neighbor_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/graph/owner_groups.h"
#include "common/sample/batch.h"
#include "common/sample/list_lengths.h"
#include "server/peers/peer_expand.h"

namespace millrace {
namespace {

// Nodes drawn between two checks of the deadline.
constexpr size_t kChunk = 1 << 16;

// The nodes of one hop grouped by owner and frontier, and the owner of each.
struct Groups {
  std::vector<std::vector<OwnedFrontier>> owned;  // [owner][frontier]
  std::vector<std::vector<uint32_t>> owners;      // [frontier][node]
  // Owners of at least one node, apart by whether their lists are read here.
  std::vector<int> here, elsewhere;
};

OwnedFrontier PartOf(const Frontier& frontier,
                     const std::vector<uint32_t>& places) {
  OwnedFrontier part;
  part.ids = TakeAt(frontier.ids, places);
  if (!frontier.trees.empty()) part.trees = TakeAt(frontier.trees, places);
  if (!frontier.times.empty()) part.times = TakeAt(frontier.times, places);
  return part;
}

bool OwnsAny(const std::vector<OwnedFrontier>& owned) {
  return std::any_of(owned.begin(), owned.end(),
                     [](const auto& part) { return !part.ids.empty(); });
}

Groups GroupNodes(const HopContext& hop) {
  const Store& store = *hop.scope.core.store;
  const std::span<const Frontier> frontiers = hop.frontiers;
  const int parts = store.partition_count();
  Groups groups;
  groups.owned.resize(parts);
  for (auto& owned : groups.owned) owned.resize(frontiers.size());
  groups.owners.resize(frontiers.size());
  for (size_t f = 0; f < frontiers.size(); ++f) {
    const Frontier& frontier = frontiers[f];
    const Relation& relation = store.schema().relations[frontier.relation];
    const PartitionBook& book =
        store.book(ListOwnerType(relation, hop.draw.direction));
    std::vector<uint32_t>& owners = groups.owners[f];
    owners.resize(frontier.ids.size());
    const auto owner = [&](size_t i) {
      owners[i] = static_cast<uint32_t>(book.Owner(frontier.ids[i]));
      return static_cast<int>(owners[i]);
    };
    for (const OwnerGroup& group : GroupByOwner(owners.size(), parts, owner)) {
      groups.owned[group.partition][f] = PartOf(frontier, group.places);
    }
  }
  for (int part = 0; part < parts; ++part) {
    if (!OwnsAny(groups.owned[part])) continue;
    // Decided once, because a partition may be found damaged meanwhile.
    (hop.scope.core.Reads(part) ? groups.here : groups.elsewhere)
        .push_back(part);
  }
  return groups;
}

std::vector<bool> AskedFrontiers(const std::vector<OwnedFrontier>& owned) {
  std::vector<bool> asked;
  for (const OwnedFrontier& part : owned) asked.push_back(!part.ids.empty());
  return asked;
}

// Appends the picks of all owners to `out` in the order of the frontier.
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
    out.AppendNode(picks, at.pick, count);
    at.pick += count;
  }
}

// The same as CallScope::CheckNotCancelled(), but errors name the hop.
absl::Status CheckHopNotCancelled(const HopContext& hop) {
  absl::Status status = hop.scope.CheckNotCancelled();
  if (status.ok()) return status;
  return absl::Status(status.code(), StrCat(std::string(status.message()),
                                            " in hop ", hop.draw.hop));
}

// Draws from the lists of a partition mapped here.
absl::Status DrawHere(const HopContext& hop, int part, const Frontier& frontier,
                      Picks& picks) {
  const Store& store = *hop.scope.core.store;
  const ListLengths lengths(store, part, frontier.relation, hop.draw.direction);
  CancelPoller poller([&hop] { return CheckHopNotCancelled(hop); });
  bool all_on_device = true;
  size_t count = 0;
  for (size_t at = 0; at < frontier.ids.size(); at += count) {
    if (at > 0) MILLRACE_RETURN_IF_ERROR(CheckHopNotCancelled(hop));
    count = NodesAtOnce(lengths, frontier.ids.subspan(at), kChunk);
    Frontier some = frontier.Part(at, count);
    some.poller = &poller;
    MILLRACE_ASSIGN_OR_RETURN(const bool on_device,
                              hop.scope.core.Draw(part, hop.draw, some, picks));
    all_on_device &= on_device;
  }
  if (!frontier.ids.empty()) hop.scope.core.hops.Add(all_on_device);
  return absl::OkStatus();
}

// Draws for the nodes of all partitions whose lists are read here.
absl::Status DrawAllHere(const HopContext& hop, Groups& groups) {
  for (const int part : groups.here) {
    for (size_t f = 0; f < hop.frontiers.size(); ++f) {
      OwnedFrontier& owned = groups.owned[part][f];
      Frontier own = hop.frontiers[f];
      own.ids = owned.ids;
      own.trees = owned.trees;
      own.times = owned.times;
      MILLRACE_RETURN_IF_ERROR(DrawHere(hop, part, own, owned.picks));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PeerNeighborSource::Expand(const DrawContext& context,
                                        std::span<const Frontier> frontiers,
                                        std::span<Picks> picks) {
  if (scope_.trace == nullptr) return ExpandHop(context, frontiers, picks);
  const SteadyTime begin = SteadyNow();
  const absl::Duration waited_before = peer_wait_;
  traced_hop_ = {};
  traced_hop_.number = context.hop;
  absl::Status status = ExpandHop(context, frontiers, picks);
  traced_hop_.total = SteadyNow() - begin;
  traced_hop_.waiting = peer_wait_ - waited_before;
  scope_.trace->NoteHop(traced_hop_);
  return status;
}

absl::Status PeerNeighborSource::ExpandHop(const DrawContext& context,
                                           std::span<const Frontier> frontiers,
                                           std::span<Picks> picks) {
  const HopContext hop = {scope_, context, frontiers, budget_};
  MILLRACE_RETURN_IF_ERROR(CheckHopNotCancelled(hop));
  MILLRACE_RETURN_IF_ERROR(budget_.StartHop(context, frontiers));
  if (scope_.core.store->partition_count() > 1) {
    return ExpandByOwner(hop, picks);
  }
  for (size_t f = 0; f < frontiers.size(); ++f) {
    MILLRACE_RETURN_IF_ERROR(DrawHere(hop, 0, frontiers[f], picks[f]));
  }
  return absl::OkStatus();
}

void PeerNeighborSource::NoteSlowest(const PeerExpand& call) {
  if (scope_.trace == nullptr) return;
  traced_hop_.slowest_partition = call.partition();
  traced_hop_.slowest_server = call.answered_by();
}

absl::Status PeerNeighborSource::StartCall(PeerExpand& call) {
  const SteadyTime begin = SteadyNow();
  absl::Status status = call.Start();
  peer_wait_ += SteadyNow() - begin;
  if (!status.ok()) NoteSlowest(call);
  return status;
}

// A call that was waited for after all others have ended is the slowest.
absl::Status PeerNeighborSource::FinishCalls(
    const std::vector<std::unique_ptr<PeerExpand>>& calls) {
  constexpr absl::Duration kWaited = absl::Microseconds(50);
  SteadyTime before = SteadyNow();
  bool waited = false;
  absl::Status status;
  for (size_t i = 0; i < calls.size() && status.ok(); ++i) {
    status = calls[i]->Finish();
    const SteadyTime now = SteadyNow();
    const bool waited_here = now - before > kWaited;
    if (waited_here || !waited) NoteSlowest(*calls[i]);
    waited |= waited_here;
    peer_wait_ += now - before;
    before = now;
  }
  return status;
}

absl::Status PeerNeighborSource::ExpandByOwner(const HopContext& hop,
                                               std::span<Picks> picks) {
  Groups groups = GroupNodes(hop);
  WireSets sets;
  if (!groups.elsewhere.empty()) sets = MakeWireSets(hop);
  std::vector<std::unique_ptr<PeerExpand>> calls;
  for (const int part : groups.elsewhere) {
    std::vector<OwnedFrontier>& owned = groups.owned[part];
    MILLRACE_RETURN_IF_ERROR(hop.budget.ExpectReply(AskedFrontiers(owned)));
    calls.push_back(std::make_unique<PeerExpand>(hop, sets, part, owned));
    MILLRACE_RETURN_IF_ERROR(StartCall(*calls.back()));
  }
  // Draws from the local lists while the calls are in flight.
  MILLRACE_RETURN_IF_ERROR(DrawAllHere(hop, groups));
  MILLRACE_RETURN_IF_ERROR(FinishCalls(calls));
  for (size_t f = 0; f < hop.frontiers.size(); ++f) {
    Merge(groups.owners[f], groups, f, picks[f]);
  }
  return absl::OkStatus();
}

}  // namespace millrace
