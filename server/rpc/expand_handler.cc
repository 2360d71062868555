// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/expand_handler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw/draw.h"
#include "common/sample/job.h"
#include "common/sample/list_lengths.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "sampler.pb.h"
#include "server/core/call_scope.h"
#include "server/load/request_limits.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

// Most nodes drawn between two checks of the reply's size and of the client.
constexpr size_t kChunk = 4096;

// Bytes that a call holds for each byte of its reply: strings that grew by
// doubling, plus the bytes being sent or, before that, the last picks with
// 64-bit ids.
constexpr uint64_t kReplyCopies = 3;

// Bytes that the sets of a frontier take for each byte of their ids: hash
// tables of 64-bit ids that are less than half full, and tables of lists with
// one entry each.
constexpr uint64_t kAmongCopies = 6;
constexpr uint64_t kExcludedCopies = 48;

// One checked frontier of a request.
struct OwnedNodes {
  Frontier frontier;  // relation and fanout only
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;
  std::vector<int64_t> times;
  NodeSet among;
  ExcludedEdges excluded;
  DType neighbor_dtype = DType::kNone;

  // The part of the frontier that starts at `begin` and has `count` nodes.
  Frontier Part(size_t begin, size_t count) const {
    Frontier all = frontier;
    all.ids = ids;
    all.trees = trees;
    all.times = times;
    all.among = &among;
    if (!excluded.by_node.empty()) all.excluded = &excluded;
    return all.Part(begin, count);
  }
};

absl::StatusOr<ExcludedEdges> ReadExcluded(
    const v1::ExpandRequest::Frontier& in, const NodeType& owners,
    const NodeType& neighbors, bool lists_have_times) {
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> nodes,
      ReadIds(in.excluded_nodes(), owners.id_dtype(), 0,
              static_cast<uint64_t>(owners.count), "excluded_nodes"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> others,
      ReadIds(in.excluded_neighbors(), neighbors.id_dtype(), 0,
              static_cast<uint64_t>(neighbors.count), "excluded_neighbors"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> times,
      ReadRaw<int64_t>(in.excluded_times(), "excluded_times"));
  if (nodes.size() != others.size() ||
      (!times.empty() && (times.size() != nodes.size() || !lists_have_times))) {
    return absl::InvalidArgumentError(
        StrCat("excluded edges: ", nodes.size(), " nodes, ", others.size(),
               " neighbours and ", times.size(), " times"));
  }
  ExcludedEdges excluded;
  excluded.timed = !times.empty();
  for (size_t i = 0; i < nodes.size(); ++i) {
    excluded.Add(nodes[i], others[i], excluded.timed ? times[i] : 0);
  }
  excluded.Sort();
  return excluded;
}

uint64_t SetBytes(const v1::ExpandRequest::Frontier& in) {
  return kAmongCopies * in.among().size() +
         kExcludedCopies * in.excluded_nodes().size();
}

// Checks that some node type has a split of this name; an empty name means the
// whole graph.
absl::Status CheckWithin(const Manifest& manifest, const std::string& within) {
  if (within.empty() ||
      std::any_of(
          manifest.splits.begin(), manifest.splits.end(),
          [&](const SplitInfo& split) { return split.name == within; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("within \"", within,
             "\": no node type has such a split\nuse the name of a split of "
             "nodes, or none for the whole graph"));
}

absl::StatusOr<OwnedNodes> ReadFrontier(const ServerCore& core,
                                        const v1::ExpandRequest& request,
                                        const v1::ExpandRequest::Frontier& in) {
  const Schema& schema = core.store->schema();
  const auto direction = static_cast<Direction>(request.direction());
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("relation", in.relation(), schema.relations.size()));
  if (in.fanout() == 0 || in.fanout() < kAllNeighbors ||
      in.fanout() > kMaxFanout) {
    return absl::InvalidArgumentError(
        StrCat("fanout ", in.fanout(), " is not -1 or 1 to ", kMaxFanout));
  }
  // RULE_AMONG reserves memory by the fanout, so it must be -1.
  if (request.rule() == v1::ExpandRequest::RULE_AMONG &&
      in.fanout() != kAllNeighbors) {
    return absl::InvalidArgumentError(
        StrCat("fanout ", in.fanout(), " of a set of nodes is not -1"));
  }
  const Relation& relation = schema.relations[in.relation()];
  const auto part = static_cast<int>(request.partition());
  if (!core.store->partition(part)
           ->edges[in.relation()]
           .lists(direction)
           .present()) {
    return FieldStatus(
        absl::StatusCode::kFailedPrecondition,
        {.field = "direction",
         .value = std::string(DirectionName(direction)),
         .limit =
             StrCat("the store has no ", DirectionName(direction), "-lists of ",
                    schema.RelationName(static_cast<int>(in.relation())))});
  }
  const TypeIndex type = ListOwnerType(relation, direction);
  const PartitionBook& book = core.store->book(type);
  OwnedNodes nodes;
  MILLRACE_ASSIGN_OR_RETURN(
      nodes.ids, ReadIds(in.ids(), schema.node_types[type].id_dtype(),
                         book.begin(part), book.end(part), "ids"));
  MILLRACE_ASSIGN_OR_RETURN(nodes.trees,
                            ReadRaw<uint32_t>(in.trees(), "trees"));
  if (!nodes.trees.empty() && nodes.trees.size() != nodes.ids.size()) {
    return absl::InvalidArgumentError(
        StrCat(nodes.trees.size(), " trees for ", nodes.ids.size(), " ids"));
  }
  MILLRACE_ASSIGN_OR_RETURN(nodes.times, ReadRaw<int64_t>(in.times(), "times"));
  if (!nodes.times.empty() && nodes.times.size() != nodes.ids.size()) {
    return absl::InvalidArgumentError(
        StrCat(nodes.times.size(), " times for ", nodes.ids.size(), " ids"));
  }
  const NodeType& neighbors =
      schema.node_types[NeighborType(relation, direction)];
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> among,
      ReadIds(in.among(), neighbors.id_dtype(), 0,
              static_cast<uint64_t>(neighbors.count), "among"));
  nodes.among.reserve(among.size());
  nodes.among.insert(among.begin(), among.end());
  MILLRACE_ASSIGN_OR_RETURN(nodes.excluded,
                            ReadExcluded(in, schema.node_types[type], neighbors,
                                         core.store->partition(part)
                                             ->edges[in.relation()]
                                             .lists(direction)
                                             .time.present()));
  nodes.frontier.relation = static_cast<RelationIndex>(in.relation());
  nodes.frontier.fanout = in.fanout();
  nodes.neighbor_dtype = neighbors.id_dtype();
  return nodes;
}

// Draws what one Expand request asks for, within the memory granted to the
// call. All references must outlive it.
class Expansion {
 public:
  Expansion(const ServerCore& core,
            const ::grpc::CallbackServerContext& context,
            const v1::ExpandRequest& request, Admission::Reservation& memory)
      : core_(core),
        context_(context),
        request_(request),
        memory_(memory),
        held_(memory.bytes()) {
    draw_.job_seed = request.job_seed();
    draw_.epoch = request.epoch();
    draw_.batch = request.batch();
    draw_.hop = static_cast<int>(request.hop());
    draw_.direction = static_cast<Direction>(request.direction());
    draw_.rule = static_cast<DrawRule>(request.rule());
    draw_.replace = request.replace();
    draw_.walk = request.walk();
    draw_.edge_ids = request.edge_ids();
    draw_.feature_rows = request.feature_rows();
    draw_.within = request.within();
  }

  // Draws for as many nodes of a frontier as fit into the reply; false if some
  // are left.
  absl::StatusOr<bool> Answer(const v1::ExpandRequest::Frontier& in,
                              v1::ExpandReply::Picks& out);

 private:
  // Nodes to draw for at once, and an upper bound of what they add to the
  // reply.
  struct Chunk {
    size_t count = 0;
    uint64_t bytes = 0;
  };
  absl::Status GrowTo(uint64_t reply_bytes) {
    return memory_.GrowTo(held_ + sets_ + kReplyCopies * reply_bytes);
  }
  absl::StatusOr<size_t> Draw(const OwnedNodes& nodes,
                              v1::ExpandReply::Picks& out);
  Chunk NextChunk(const ListLengths& lengths, const OwnedNodes& nodes,
                  size_t first) const;
  void Append(const Picks& picks, DType neighbor_dtype,
              v1::ExpandReply::Picks& out);

  const ServerCore& core_;
  const ::grpc::CallbackServerContext& context_;
  const v1::ExpandRequest& request_;
  Admission::Reservation& memory_;
  const uint64_t held_;  // by the request
  DrawContext draw_;
  uint64_t sets_ = 0;  // bytes of the current frontier's sets
  uint64_t used_ = 0;  // bytes of the reply so far
};

// Chooses a number of nodes that needs little more than the room left in the
// reply.
Expansion::Chunk Expansion::NextChunk(const ListLengths& lengths,
                                      const OwnedNodes& nodes,
                                      size_t first) const {
  const std::span ids = std::span(nodes.ids).subspan(first);
  const size_t most = NodesAtOnce(lengths, ids, kChunk);
  const int64_t fanout = nodes.frontier.fanout;
  const uint64_t per_pick = ItemBytes(nodes.neighbor_dtype) +
                            (draw_.edge_ids ? 8 : 0) +
                            (draw_.feature_rows ? 8 : 0);
  Chunk chunk;
  while (chunk.count < most && used_ + chunk.bytes < kMaxExpandReplyBytes) {
    int64_t picks = lengths.Of(ids[chunk.count]);
    if (fanout != kAllNeighbors && picks > 0) {
      picks = draw_.replace ? fanout : std::min(picks, fanout);
    }
    chunk.bytes += sizeof(uint32_t) + static_cast<uint64_t>(picks) * per_pick;
    ++chunk.count;
  }
  return chunk;
}

void Expansion::Append(const Picks& picks, DType neighbor_dtype,
                       v1::ExpandReply::Picks& out) {
  AppendRaw(std::span<const uint32_t>(picks.counts), *out.mutable_counts());
  AppendIds(picks.neighbors, neighbor_dtype, *out.mutable_neighbors());
  AppendRaw(std::span<const int64_t>(picks.edge_ids), *out.mutable_edge_ids());
  AppendRaw(std::span<const uint64_t>(picks.feature_rows),
            *out.mutable_feature_rows());
  used_ += picks.counts.size() * sizeof(uint32_t) +
           picks.neighbors.size() * ItemBytes(neighbor_dtype) +
           picks.edge_ids.size() * sizeof(int64_t) +
           picks.feature_rows.size() * sizeof(uint64_t);
}

absl::StatusOr<bool> Expansion::Answer(const v1::ExpandRequest::Frontier& in,
                                       v1::ExpandReply::Picks& out) {
  sets_ = SetBytes(in);
  MILLRACE_RETURN_IF_ERROR(GrowTo(used_));
  MILLRACE_ASSIGN_OR_RETURN(const OwnedNodes nodes,
                            ReadFrontier(core_, request_, in));
  MILLRACE_ASSIGN_OR_RETURN(const size_t done, Draw(nodes, out));
  return done == nodes.ids.size();
}

absl::StatusOr<size_t> Expansion::Draw(const OwnedNodes& nodes,
                                       v1::ExpandReply::Picks& out) {
  const auto part = static_cast<int>(request_.partition());
  const ListLengths lengths(*core_.store, part, nodes.frontier.relation,
                            draw_.direction);
  CancelPoller poller([this] { return CheckNotCancelled(context_); });
  size_t done = 0;
  Picks picks;
  while (done < nodes.ids.size() && used_ < kMaxExpandReplyBytes) {
    MILLRACE_RETURN_IF_ERROR(CheckNotCancelled(context_));
    const Chunk chunk = NextChunk(lengths, nodes, done);
    MILLRACE_RETURN_IF_ERROR(GrowTo(used_ + chunk.bytes));
    picks.Clear();
    Frontier frontier = nodes.Part(done, chunk.count);
    frontier.poller = &poller;
    MILLRACE_RETURN_IF_ERROR(
        DrawNeighbors(*core_.store, part, draw_, frontier, picks));
    Append(picks, nodes.neighbor_dtype, out);
    done += chunk.count;
  }
  return done;
}

}  // namespace

absl::Status AnswerExpand(ServerCore& core,
                          const ::grpc::CallbackServerContext& context,
                          const v1::ExpandRequest& request,
                          Admission::Reservation& memory,
                          v1::ExpandReply& reply) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  constexpr uint32_t kHopNumbers = 1 << 16;  // steps of walks count as hops
  if (!v1::Job::Direction_IsValid(request.direction()) ||
      !v1::ExpandRequest::Rule_IsValid(request.rule()) ||
      request.hop() >= kHopNumbers) {
    return absl::InvalidArgumentError(
        StrCat("direction ", static_cast<int>(request.direction()), ", rule ",
               static_cast<int>(request.rule()), ", hop ", request.hop(),
               ": no such direction or rule, or beyond hop ", kHopNumbers - 1));
  }
  const size_t relations = core.store->schema().relations.size();
  if (static_cast<size_t>(request.frontiers_size()) > relations) {
    return absl::InvalidArgumentError(
        StrCat(request.frontiers_size(), " frontiers: the graph has ",
               relations, " relations\nsend at most one for each"));
  }
  MILLRACE_RETURN_IF_ERROR(core.store.CheckSplits(
      UsedSplitsFromProto(request.splits()), request.within()));
  const Store& seen = *core.store;
  absl::Status within = CheckWithin(seen.manifest(), request.within());
  // The caller may know a split that was added after this server opened the
  // store; adding a split keeps the fingerprint.
  if (!within.ok() && core.store.LookForSplits(seen)) {
    within = CheckWithin(core.store->manifest(), request.within());
  }
  MILLRACE_RETURN_IF_ERROR(within);
  Expansion expansion(core, context, request, memory);
  for (const v1::ExpandRequest::Frontier& in : request.frontiers()) {
    MILLRACE_ASSIGN_OR_RETURN(const bool whole,
                              expansion.Answer(in, *reply.add_picks()));
    if (!whole) break;  // the caller asks for the rest
  }
  return absl::OkStatus();
}

}  // namespace millrace
