// SPDX-License-Identifier: Apache-2.0
#include "server/leaf_answers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "sampler.pb.h"
#include "server/limits.h"

namespace millrace {
namespace {

// Nodes drawn between two looks at the size of the reply and the client.
constexpr size_t kChunk = 4096;

// One frontier of a request, checked.
struct OwnedNodes {
  Frontier frontier;  // ids and trees refer to the vectors
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;
  DType neighbor_dtype = DType::kNone;
};

absl::StatusOr<OwnedNodes> ReadFrontier(const ServerCore& core,
                                        const v1::ExpandRequest& request,
                                        const v1::ExpandRequest::Frontier& in) {
  const Schema& schema = core.store->schema();
  const auto direction = static_cast<Direction>(request.direction());
  if (in.relation() >= schema.relations.size()) {
    return absl::InvalidArgumentError(StrCat("relation ", in.relation(),
                                             ": the graph has ",
                                             schema.relations.size()));
  }
  if (in.fanout() == 0 || in.fanout() < kAllNeighbors ||
      in.fanout() > kMaxFanout) {
    return absl::InvalidArgumentError(
        StrCat("fanout ", in.fanout(), " is not -1 or 1 to ", kMaxFanout));
  }
  const Relation& relation = schema.relations[in.relation()];
  const auto part = static_cast<int>(request.partition());
  if (!core.store->partition(part)
           ->edges[in.relation()]
           .lists(direction)
           .present()) {
    return absl::FailedPreconditionError(
        StrCat("the store has no ", DirectionName(direction), "-lists of ",
               schema.RelationName(static_cast<int>(in.relation())),
               "\nmake one with: millrace partition --directions both"));
  }
  const TypeIndex type = ListType(relation, direction);
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
  nodes.frontier.relation = static_cast<RelationIndex>(in.relation());
  nodes.frontier.fanout = in.fanout();
  nodes.neighbor_dtype =
      schema.node_types[NeighborType(relation, direction)].id_dtype();
  return nodes;
}

// How many nodes from `first` on to draw at once, so that not much more than
// `room` bytes come of it.
size_t ChunkSize(const ServerCore& core, const v1::ExpandRequest& request,
                 const OwnedNodes& nodes, size_t first, size_t room) {
  const auto part = static_cast<int>(request.partition());
  const auto direction = static_cast<Direction>(request.direction());
  const Schema& schema = core.store->schema();
  const RelationIndex relation = nodes.frontier.relation;
  const uint64_t base =
      core.store->book(ListType(schema.relations[relation], direction))
          .begin(part);
  const auto indptr = core.store->partition(part)
                          ->edges[relation]
                          .lists(direction)
                          .indptr.As<int64_t>();
  const auto fanout = static_cast<uint64_t>(nodes.frontier.fanout);
  const uint64_t per_pick =
      ItemBytes(nodes.neighbor_dtype) + (request.edge_ids() ? 8 : 0);
  uint64_t bytes = 0;
  size_t count = 0;
  while (first + count < nodes.ids.size() && count < kChunk && bytes < room) {
    uint64_t picks = fanout;
    if (nodes.frontier.fanout == kAllNeighbors) {
      const uint64_t row = nodes.ids[first + count] - base;
      picks = row + 1 < indptr.size() ? static_cast<uint64_t>(std::max<int64_t>(
                                            indptr[row + 1] - indptr[row], 0))
                                      : 0;
    }
    bytes += sizeof(uint32_t) + picks * per_pick;
    ++count;
  }
  return count;
}

// Draws as many of the nodes as fit; `used` counts the bytes of the reply.
absl::StatusOr<size_t> DrawSome(const ServerCore& core,
                                const ::grpc::CallbackServerContext& context,
                                const v1::ExpandRequest& request,
                                const DrawContext& draw,
                                const OwnedNodes& nodes, size_t& used,
                                v1::ExpandReply::Picks& out) {
  size_t done = 0;
  Picks picks;
  while (done < nodes.ids.size() && used < kMaxExpandReplyBytes) {
    if (context.IsCancelled()) {
      return absl::CancelledError("the caller gave up");
    }
    const size_t count =
        ChunkSize(core, request, nodes, done, kMaxExpandReplyBytes - used);
    Frontier chunk = nodes.frontier;
    chunk.ids = std::span(nodes.ids).subspan(done, count);
    if (!nodes.trees.empty()) {
      chunk.trees = std::span(nodes.trees).subspan(done, count);
    }
    picks.Clear();
    MILLRACE_RETURN_IF_ERROR(
        DrawNeighbors(*core.store, static_cast<int>(request.partition()), draw,
                      chunk, picks));
    AppendRaw(std::span<const uint32_t>(picks.counts), *out.mutable_counts());
    AppendIds(picks.neighbors, nodes.neighbor_dtype, *out.mutable_neighbors());
    AppendRaw(std::span<const int64_t>(picks.edge_ids),
              *out.mutable_edge_ids());
    used += picks.counts.size() * sizeof(uint32_t) +
            picks.neighbors.size() * ItemBytes(nodes.neighbor_dtype) +
            picks.edge_ids.size() * sizeof(int64_t);
    done += count;
  }
  return done;
}

}  // namespace

absl::Status AnswerExpand(const ServerCore& core,
                          const ::grpc::CallbackServerContext& context,
                          const v1::ExpandRequest& request,
                          v1::ExpandReply& reply) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  if (!v1::Job::Direction_IsValid(request.direction()) ||
      request.hop() >= static_cast<uint32_t>(kMaxHops)) {
    return absl::InvalidArgumentError(StrCat(
        "direction ", static_cast<int>(request.direction()), ", hop ",
        request.hop(), ": no such direction, or beyond hop ", kMaxHops - 1));
  }
  DrawContext draw;
  draw.job_seed = request.job_seed();
  draw.epoch = request.epoch();
  draw.batch = request.batch();
  draw.hop = static_cast<int>(request.hop());
  draw.direction = static_cast<Direction>(request.direction());
  draw.replace = request.replace();
  draw.edge_ids = request.edge_ids();
  size_t used = 0;
  for (const v1::ExpandRequest::Frontier& in : request.frontiers()) {
    MILLRACE_ASSIGN_OR_RETURN(const OwnedNodes nodes,
                              ReadFrontier(core, request, in));
    MILLRACE_ASSIGN_OR_RETURN(
        const size_t done, DrawSome(core, context, request, draw, nodes, used,
                                    *reply.add_picks()));
    if (done < nodes.ids.size()) break;  // the caller asks for the rest
  }
  return absl::OkStatus();
}

absl::Status AnswerResolve(const ServerCore& core,
                           const v1::ResolveRequest& request,
                           v1::ResolveReply& reply) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  const Schema& schema = core.store->schema();
  if (request.node_type() >= schema.node_types.size()) {
    return absl::InvalidArgumentError(StrCat("node type ", request.node_type(),
                                             ": the graph has ",
                                             schema.node_types.size()));
  }
  const auto type = static_cast<TypeIndex>(request.node_type());
  const auto part = static_cast<int>(request.partition());
  const PartitionBook& book = core.store->book(type);
  const uint64_t begin =
      std::min(part * book.lookup_width(), book.node_count());
  const uint64_t end = std::min(begin + book.lookup_width(), book.node_count());
  MILLRACE_ASSIGN_OR_RETURN(std::vector<uint64_t> ids,
                            ReadIds(request.original_ids(), DType::kUint64,
                                    begin, end, "original_ids"));
  const Array& lookup = core.store->partition(part)->nodes[type].lookup;
  for (uint64_t& id : ids) {
    const auto at = static_cast<int64_t>(id - begin);
    if (at >= lookup.rows()) {
      return absl::DataLossError(StrCat(
          LookupPath(part, schema.node_types[type].name), " ends before ", at));
    }
    id = static_cast<uint64_t>(lookup.IntegerAt(at));
    if (id >= book.node_count()) {
      return absl::DataLossError(
          StrCat(LookupPath(part, schema.node_types[type].name), ": index ", at,
                 " is ", id, " of ", book.node_count(), " nodes"));
    }
  }
  AppendIds(ids, schema.node_types[type].id_dtype(), *reply.mutable_ids());
  return absl::OkStatus();
}

absl::Status AnswerDescribe(const ServerCore& core, v1::DescribeReply& reply) {
  ManifestToProto(core.store->manifest(), reply);
  reply.set_version(MILLRACE_VERSION);
  reply.set_protocol_version(kProtocolVersion);
  for (const int part : core.store->partitions()) {
    reply.add_partitions(static_cast<uint32_t>(part));
  }
  reply.set_draining(core.sample_calls.draining());
  reply.set_inflight_bytes(core.admission.in_use());
  reply.set_max_inflight_bytes(core.admission.limit());
  reply.set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - core.started));
  return absl::OkStatus();
}

}  // namespace millrace
