// SPDX-License-Identifier: Apache-2.0
#include "server/owner_expand.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/status.h"
#include "common/sample/batch.h"
#include "common/wire/error_info.h"
#include "common/wire/ids.h"
#include "sampler.grpc.pb.h"

namespace millrace {
namespace {

// Nodes in one request, in bytes with their trees and times: keeps it well
// below the receive limit.
constexpr size_t kMaxRequestBytes = 4 << 20;

// Appends the picks of a reply to `picks`; returns how many nodes it answers.
absl::StatusOr<size_t> AppendPicks(const v1::ExpandReply::Picks& in,
                                   const Relation& relation,
                                   const DrawContext& draw, int32_t fanout,
                                   const NodeType& neighbor_type,
                                   Picks& picks) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint32_t> counts,
                            ReadRaw<uint32_t>(in.counts(), "counts"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> neighbors,
      ReadIds(in.neighbors(), neighbor_type.id_dtype(), 0,
              static_cast<uint64_t>(neighbor_type.count), "neighbors"));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ids,
                            ReadRaw<int64_t>(in.edge_ids(), "edge_ids"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> feature_rows,
      ReadRaw<uint64_t>(in.feature_rows(), "feature_rows"));
  const bool has_rows = draw.feature_rows && relation.feature.present();
  const uint64_t total =
      std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const bool too_many =
      fanout >= 0 &&
      std::any_of(counts.begin(), counts.end(), [fanout](uint32_t count) {
        return count > static_cast<uint32_t>(fanout);
      });
  if (total != neighbors.size() || too_many ||
      edge_ids.size() != (draw.edge_ids ? neighbors.size() : 0) ||
      feature_rows.size() != (has_rows ? neighbors.size() : 0)) {
    return absl::InternalError(StrCat("the picks of relation ", relation.name,
                                      " contradict "
                                      "themselves"));
  }
  picks.counts.insert(picks.counts.end(), counts.begin(), counts.end());
  picks.neighbors.insert(picks.neighbors.end(), neighbors.begin(),
                         neighbors.end());
  picks.edge_ids.insert(picks.edge_ids.end(), edge_ids.begin(), edge_ids.end());
  picks.feature_rows.insert(picks.feature_rows.end(), feature_rows.begin(),
                            feature_rows.end());
  return counts.size();
}

// What a node takes in a request.
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

}  // namespace

struct OwnerExpand::Call {
  std::unique_ptr<::grpc::ClientContext> context;
  std::unique_ptr<v1::Sampler::Stub> stub;
  v1::ExpandRequest request;
  v1::ExpandReply reply;
  // What request.frontiers ask for, in order.
  struct Piece {
    size_t frontier;
    size_t nodes;
  };
  std::vector<Piece> pieces;
  ::grpc::Status status;
  absl::Notification done;
};

OwnerExpand::OwnerExpand(const HopContext& hop, int partition,
                         std::vector<OwnedFrontier>& owned)
    : hop_(hop),
      partition_(partition),
      owned_(owned),
      picker_(hop, partition) {}

OwnerExpand::~OwnerExpand() {
  if (call_ == nullptr) return;
  call_->context->TryCancel();
  call_->done.WaitForNotification();
}

absl::Status OwnerExpand::Start() {
  SkipEmpty();
  return frontier_ < owned_.size() ? Send() : absl::OkStatus();
}

void OwnerExpand::SkipEmpty() {
  while (frontier_ < owned_.size() && node_ == owned_[frontier_].ids.size()) {
    ++frontier_;
    node_ = 0;
  }
}

absl::Status OwnerExpand::Send() {
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<FleetMember> member,
                            picker_.Pick());
  auto filled = std::make_unique<Call>();
  FillRequest(*filled);
  MILLRACE_RETURN_IF_ERROR(CheckSize(filled->request.ByteSizeLong()));
  call_ = std::move(filled);
  call_->context = hop_.PeerContext();
  call_->stub = v1::Sampler::NewStub(member->NextChannel());
  Call* call = call_.get();
  call->stub->async()->Expand(call->context.get(), &call->request, &call->reply,
                              [call](::grpc::Status status) {
                                call->status = std::move(status);
                                call->done.Notify();
                              });
  return absl::OkStatus();
}

// Only the set of DrawRule::kAmong, which goes out whole, makes a request so
// large.
absl::Status OwnerExpand::CheckSize(size_t bytes) const {
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return absl::OutOfRangeError(
      StrCat("--method induced: asking partition ", partition_,
             " for the edges among the nodes of the batch takes ", bytes,
             " bytes; the limit of a message is ", kMaxMessageBytes,
             "\nuse a smaller --batch-size or smaller --fanouts"));
}

void OwnerExpand::FillRequest(Call& call) {
  v1::ExpandRequest& request = call.request;
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
  request.set_partition(static_cast<uint32_t>(partition_));
  request.set_fingerprint(hop_.core.store->manifest().fingerprint);
  const Schema& schema = hop_.core.store->schema();
  size_t room = kMaxRequestBytes;
  size_t node = node_;
  for (size_t i = frontier_; i < owned_.size(); ++i, node = 0) {
    const OwnedFrontier& owned = owned_[i];
    if (node == owned.ids.size()) continue;
    const RelationIndex relation = hop_.frontiers[i].relation;
    const DType ids = schema
                          .node_types[ListType(schema.relations[relation],
                                               hop_.draw.direction)]
                          .id_dtype();
    const size_t count =
        std::min(room / NodeBytes(owned, ids), owned.ids.size() - node);
    const std::string among = AmongOf(i);
    // Some nodes must be asked for, however large the set is.
    const bool fits = call.pieces.empty() || among.size() < room;
    if (count == 0 || !fits) break;
    v1::ExpandRequest::Frontier& out = *request.add_frontiers();
    out.set_relation(static_cast<uint32_t>(relation));
    out.set_fanout(hop_.frontiers[i].fanout);
    AppendNodes(owned, node, count, ids, out);
    if (!among.empty()) out.set_among(among);
    AppendExcluded(i, owned, node, count, out);
    call.pieces.push_back({i, count});
    room -= std::min(room, out.ByteSizeLong());
  }
}

// The set of a frontier of DrawRule::kAmong as it is sent; else empty.
std::string OwnerExpand::AmongOf(size_t f) const {
  std::string bytes;
  const NodeSet* among = hop_.frontiers[f].among;
  if (among == nullptr) return bytes;
  std::vector<uint64_t> ids(among->begin(), among->end());
  std::sort(ids.begin(), ids.end());
  const Schema& schema = hop_.core.store->schema();
  const Relation& relation = schema.relations[hop_.frontiers[f].relation];
  AppendIds(
      ids,
      schema.node_types[NeighborType(relation, hop_.draw.direction)].id_dtype(),
      bytes);
  return bytes;
}

// The excluded entries of the lists that are asked for.
void OwnerExpand::AppendExcluded(size_t f, const OwnedFrontier& owned,
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
    if (!seen.insert(owned.ids[i]).second) continue;  // in other trees
    for (const ExcludedEdges::Entry& entry : entries->second) {
      nodes.push_back(owned.ids[i]);
      neighbors.push_back(entry.neighbor);
      if (excluded->timed) times.push_back(entry.time);
    }
  }
  const Schema& schema = hop_.core.store->schema();
  const Relation& relation = schema.relations[hop_.frontiers[f].relation];
  const Direction direction = hop_.draw.direction;
  AppendIds(nodes, schema.node_types[ListType(relation, direction)].id_dtype(),
            *out.mutable_excluded_nodes());
  AppendIds(neighbors,
            schema.node_types[NeighborType(relation, direction)].id_dtype(),
            *out.mutable_excluded_neighbors());
  AppendRaw(std::span<const int64_t>(times), *out.mutable_excluded_times());
}

absl::Status OwnerExpand::Finish() {
  while (call_ != nullptr) {
    call_->done.WaitForNotification();
    const std::unique_ptr<Call> call = std::move(call_);
    const absl::Status status = FromGrpcStatus(call->status);
    if (!status.ok()) {
      MILLRACE_RETURN_IF_ERROR(picker_.AfterFailure(status));
      MILLRACE_RETURN_IF_ERROR(Send());
      continue;
    }
    picker_.NoteSuccess();
    MILLRACE_RETURN_IF_ERROR(TakeReply(*call));
    SkipEmpty();
    if (frontier_ < owned_.size()) MILLRACE_RETURN_IF_ERROR(Send());
  }
  return absl::OkStatus();
}

absl::Status OwnerExpand::TakeReply(const Call& call) {
  const Schema& schema = hop_.core.store->schema();
  const int count = call.reply.picks_size();
  if (count > static_cast<int>(call.pieces.size())) {
    return picker_.Named(
        absl::InternalError("the reply answers more than was asked"));
  }
  bool progress = false;
  for (int i = 0; i < count; ++i) {
    const auto& [f, nodes] = call.pieces[i];
    const v1::ExpandReply::Picks& in = call.reply.picks(i);
    const Frontier& frontier = hop_.frontiers[f];
    const Relation& relation = schema.relations[frontier.relation];
    const NodeType& neighbors =
        schema.node_types[NeighborType(relation, hop_.draw.direction)];
    // A refusal is ours, not the owner's.
    MILLRACE_RETURN_IF_ERROR(hop_.budget.AddPicks(
        f, in.neighbors().size() / ItemBytes(neighbors.id_dtype())));
    const absl::StatusOr<size_t> answered = AppendPicks(
        in, relation, hop_.draw, frontier.fanout, neighbors, owned_[f].picks);
    if (!answered.ok()) return picker_.Named(answered.status());
    if (*answered > nodes || (*answered < nodes && i + 1 < count)) {
      return picker_.Named(absl::InternalError("the reply has gaps"));
    }
    SkipEmpty();
    node_ += *answered;
    progress |= *answered > 0;
  }
  return progress
             ? absl::OkStatus()
             : picker_.Named(absl::InternalError("the reply answers nothing"));
}

}  // namespace millrace
