// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_expand.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/channel_args.h"
#include "common/sample/batch.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "sampler.pb.h"
#include "server/peers/expand_reply_reader.h"

namespace millrace {
namespace {

// Limit for the nodes, with their trees and times, in one request; keeps it
// well below the receive limit.
constexpr size_t kMaxRequestBytes = 4 << 20;

size_t NodeBytes(const OwnedFrontier& owned, DType ids) {
  return ItemBytes(ids) + (owned.trees.empty() ? 0 : sizeof(uint32_t)) +
         (owned.times.empty() ? 0 : sizeof(int64_t));
}

void AppendNodes(const OwnedFrontier& owned, size_t first, size_t count,
                 DType ids, v1::ExpandRequest::Frontier& out) {
  AppendIds(std::span(owned.ids).subspan(first, count), ids,
            *out.mutable_ids());
  if (!owned.trees.empty()) {
    AppendRaw(std::span(owned.trees).subspan(first, count),
              *out.mutable_trees());
  }
  if (!owned.times.empty()) {
    AppendRaw(std::span(owned.times).subspan(first, count),
              *out.mutable_times());
  }
}

// The dtype of the ids of a frontier's nodes.
DType NodeIds(const HopContext& hop, const Frontier& frontier) {
  const Schema& schema = hop.scope.core.store->schema();
  const Relation& relation = schema.relations[frontier.relation];
  return schema.node_types[ListOwnerType(relation, hop.draw.direction)]
      .id_dtype();
}

// The dtype of the ids of their neighbours.
DType NeighborIds(const HopContext& hop, const Frontier& frontier) {
  const Schema& schema = hop.scope.core.store->schema();
  const Relation& relation = schema.relations[frontier.relation];
  return schema.node_types[NeighborType(relation, hop.draw.direction)]
      .id_dtype();
}

}  // namespace

WireSets MakeWireSets(const HopContext& hop) {
  WireSets sets;
  for (const Frontier& frontier : hop.frontiers) {
    if (frontier.among == nullptr) continue;
    const auto [set, is_new] = sets.try_emplace(frontier.among);
    if (!is_new) continue;  // relations with the same neighbours share a set
    std::vector<uint64_t> ids(frontier.among->begin(), frontier.among->end());
    std::sort(ids.begin(), ids.end());
    AppendIds(ids, NeighborIds(hop, frontier), set->second);
  }
  return sets;
}

PeerExpand::PeerExpand(const HopContext& hop, const WireSets& sets,
                       int partition, std::vector<OwnedFrontier>& owned)
    : hop_(hop),
      sets_(sets),
      partition_(partition),
      owned_(owned),
      call_(hop.scope, partition, Hedging::Kind::kExpand,
            "/millrace.v1.Sampler/Expand") {}

absl::Status PeerExpand::Start() {
  SkipEmpty();
  return frontier_ < owned_.size() ? Send() : absl::OkStatus();
}

void PeerExpand::SkipEmpty() {
  while (frontier_ < owned_.size() && node_ == owned_[frontier_].ids.size()) {
    ++frontier_;
    node_ = 0;
  }
}

absl::Status PeerExpand::Send() {
  v1::ExpandRequest request;
  FillDraw(request);
  FillFrontiers(request);
  MILLRACE_RETURN_IF_ERROR(CheckSize(request.ByteSizeLong()));
  return call_.Start(request);
}

// Only the set for DrawRule::kAmong, which is never split, can make a request
// this large.
absl::Status PeerExpand::CheckSize(size_t bytes) const {
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return FieldStatus(
      absl::StatusCode::kOutOfRange,
      {.problem = FieldError::Problem::kTooMuch,
       .field = "batch_size",
       .value = StrCat("asking partition ", partition_,
                       " for the edges among the nodes of a batch takes a "
                       "message of ",
                       bytes, " bytes"),
       .limit = StrCat(kMaxMessageBytes)});
}

// Sets everything but the frontiers.
void PeerExpand::FillDraw(v1::ExpandRequest& request) const {
  const Manifest& manifest = hop_.scope.core.store->manifest();
  request.set_job_seed(hop_.draw.job_seed);
  request.set_epoch(hop_.draw.epoch);
  request.set_batch(hop_.draw.batch);
  request.set_hop(static_cast<uint32_t>(hop_.draw.hop));
  request.set_direction(static_cast<v1::Job::Direction>(hop_.draw.direction));
  request.set_rule(static_cast<v1::ExpandRequest::Rule>(hop_.draw.rule));
  request.set_replace(hop_.draw.replace);
  request.set_walk(hop_.draw.walk);
  request.set_edge_ids(hop_.draw.edge_ids);
  request.set_feature_rows(hop_.draw.feature_rows);
  request.set_within(std::string(hop_.draw.within));
  UsedSplitsToProto(SplitsOfTrainGraph(hop_.draw.within, manifest),
                    *request.mutable_splits());
  request.set_partition(static_cast<uint32_t>(partition_));
  request.set_fingerprint(manifest.fingerprint);
}

// Adds as many of the nodes without an answer as one request may have.
void PeerExpand::FillFrontiers(v1::ExpandRequest& request) {
  pieces_.clear();
  size_t room = kMaxRequestBytes;
  size_t node = node_;
  for (size_t f = frontier_; f < owned_.size(); ++f, node = 0) {
    const OwnedFrontier& owned = owned_[f];
    if (node == owned.ids.size()) continue;
    const DType ids = NodeIds(hop_, hop_.frontiers[f]);
    const size_t count =
        std::min(room / NodeBytes(owned, ids), owned.ids.size() - node);
    const std::string* among = AmongOf(f);
    // Some nodes must be sent, however large the set is.
    const bool fits =
        pieces_.empty() || among == nullptr || among->size() < room;
    if (count == 0 || !fits) break;
    v1::ExpandRequest::Frontier& out = *request.add_frontiers();
    out.set_relation(static_cast<uint32_t>(hop_.frontiers[f].relation));
    out.set_fanout(hop_.frontiers[f].fanout);
    AppendNodes(owned, node, count, ids, out);
    if (among != nullptr) out.set_among(*among);
    AppendExcluded(f, owned, node, count, out);
    pieces_.push_back({f, count});
    room -= std::min(room, out.ByteSizeLong());
  }
}

const std::string* PeerExpand::AmongOf(size_t f) const {
  const NodeSet* among = hop_.frontiers[f].among;
  return among == nullptr ? nullptr : &sets_.at(among);
}

void PeerExpand::AppendExcluded(size_t f, const OwnedFrontier& owned,
                                size_t first, size_t count,
                                v1::ExpandRequest::Frontier& out) const {
  const ExcludedEdges* excluded = hop_.frontiers[f].excluded;
  if (excluded == nullptr) return;
  std::vector<uint64_t> nodes, neighbors;
  std::vector<int64_t> times;
  absl::flat_hash_set<uint64_t> seen;
  for (size_t i = first; i < first + count; ++i) {
    const auto entries = excluded->by_node.find(owned.ids[i]);
    if (entries == excluded->by_node.end()) continue;
    if (!seen.insert(owned.ids[i]).second) continue;  // seen in another tree
    for (const ExcludedEdges::Entry& entry : entries->second) {
      nodes.push_back(owned.ids[i]);
      neighbors.push_back(entry.neighbor);
      if (excluded->timed) times.push_back(entry.time);
    }
  }
  const Frontier& frontier = hop_.frontiers[f];
  AppendIds(nodes, NodeIds(hop_, frontier), *out.mutable_excluded_nodes());
  AppendIds(neighbors, NeighborIds(hop_, frontier),
            *out.mutable_excluded_neighbors());
  AppendRaw(std::span<const int64_t>(times), *out.mutable_excluded_times());
}

absl::Status PeerExpand::Finish() {
  while (!pieces_.empty()) {
    v1::ExpandReply reply;
    MILLRACE_RETURN_IF_ERROR(call_.Finish(reply));
    MILLRACE_RETURN_IF_ERROR(TakeReply(reply));
    pieces_.clear();
    SkipEmpty();
    if (frontier_ < owned_.size()) MILLRACE_RETURN_IF_ERROR(Send());
  }
  return absl::OkStatus();
}

absl::Status PeerExpand::TakeReply(const v1::ExpandReply& reply) {
  const int count = reply.picks_size();
  if (count > static_cast<int>(pieces_.size())) {
    return call_.Named(
        absl::InternalError("the reply answers more than was asked"));
  }
  bool progress = false;
  for (int i = 0; i < count; ++i) {
    const auto& [f, nodes] = pieces_[i];
    const v1::ExpandReply::Picks& in = reply.picks(i);
    const Frontier& frontier = hop_.frontiers[f];
    // A refusal comes from this server's budget, so it must not name the owner.
    MILLRACE_RETURN_IF_ERROR(hop_.budget.AddPicks(
        f, in.neighbors().size() / ItemBytes(NeighborIds(hop_, frontier))));
    const absl::StatusOr<size_t> answered =
        AppendPicks(in, hop_.scope.core.store->schema(), hop_.draw, frontier,
                    owned_[f].picks);
    if (!answered.ok()) return call_.Named(answered.status());
    if (*answered > nodes || (*answered < nodes && i + 1 < count)) {
      return call_.Named(absl::InternalError("the reply has gaps"));
    }
    SkipEmpty();
    node_ += *answered;
    progress |= *answered > 0;
  }
  return progress
             ? absl::OkStatus()
             : call_.Named(absl::InternalError("the reply answers nothing"));
}

}  // namespace millrace
