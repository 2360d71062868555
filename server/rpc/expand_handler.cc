// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/expand_handler.h"

#include <iterator>
#include <span>

#include "common/base/status_macros.h"
#include "common/sample/batch.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw_rule.h"
#include "common/sample/list_lengths.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"
#include "server/core/call_scope.h"
#include "server/load/memory_model.h"
#include "server/load/request_limits.h"
#include "server/rpc/expand_request.h"

namespace millrace {
namespace {

// Maximum number of nodes drawn between two checks of the reply's size and of
// the client.
constexpr size_t kChunk = 4096;

// Draws what one Expand request asks for, within the memory granted to the
// call. All references must outlive it.
class Expansion {
 public:
  Expansion(ServerCore& core, const ::grpc::CallbackServerContext& context,
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
    static_assert(std::size(kDrawRules) == v1::ExpandRequest::Rule_ARRAYSIZE);
    draw_.rule = static_cast<DrawRule>(request.rule());
    draw_.replace = request.replace();
    draw_.walk = request.walk();
    draw_.edge_ids = request.edge_ids();
    draw_.feature_rows = request.feature_rows();
    draw_.within = request.within();
  }

  // Draws for as many nodes of a frontier as fit into the reply. Returns false
  // if some are left.
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
    return memory_.GrowTo(held_ + sets_ + kBytesPerReplyByte * reply_bytes);
  }
  absl::StatusOr<size_t> Draw(const OwnedNodes& nodes,
                              v1::ExpandReply::Picks& out);
  Chunk NextChunk(const ListLengths& lengths, const OwnedNodes& nodes,
                  size_t first) const;
  void Append(const Picks& picks, DType neighbor_dtype,
              v1::ExpandReply::Picks& out);

  ServerCore& core_;
  const ::grpc::CallbackServerContext& context_;
  const v1::ExpandRequest& request_;
  Admission::Reservation& memory_;
  const uint64_t held_;  // bytes held by the request
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
  const size_t max_count = NodesAtOnce(lengths, ids, kChunk);
  const uint64_t per_pick = ItemBytes(nodes.neighbor_dtype) +
                            (draw_.edge_ids ? 8 : 0) +
                            (draw_.feature_rows ? 8 : 0);
  Chunk chunk;
  while (chunk.count < max_count &&
         used_ + chunk.bytes < kMaxExpandReplyBytes) {
    const int64_t picks =
        MaxPicks(lengths.Of(ids[chunk.count]), nodes.fanout, draw_.replace);
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
                            ReadFrontier(*core_.store, request_, in));
  MILLRACE_ASSIGN_OR_RETURN(const size_t done, Draw(nodes, out));
  return done == nodes.ids.size();
}

absl::StatusOr<size_t> Expansion::Draw(const OwnedNodes& nodes,
                                       v1::ExpandReply::Picks& out) {
  const auto part = static_cast<int>(request_.partition());
  const ListLengths lengths(*core_.store, part, nodes.relation,
                            draw_.direction);
  CancelPoller poller([this] { return CheckNotCancelled(context_); });
  size_t done = 0;
  bool all_on_device = true;
  Picks picks;
  while (done < nodes.ids.size() && used_ < kMaxExpandReplyBytes) {
    MILLRACE_RETURN_IF_ERROR(CheckNotCancelled(context_));
    const Chunk chunk = NextChunk(lengths, nodes, done);
    MILLRACE_RETURN_IF_ERROR(GrowTo(used_ + chunk.bytes));
    picks.Clear();
    Frontier frontier = nodes.Part(done, chunk.count);
    frontier.poller = &poller;
    MILLRACE_ASSIGN_OR_RETURN(const bool on_device,
                              core_.Draw(part, draw_, frontier, picks));
    all_on_device &= on_device;
    Append(picks, nodes.neighbor_dtype, out);
    done += chunk.count;
  }
  if (done > 0) core_.hops.Add(all_on_device);
  return done;
}

}  // namespace

absl::Status AnswerExpand(ServerCore& core,
                          const ::grpc::CallbackServerContext& context,
                          const v1::ExpandRequest& request,
                          Admission::Reservation& memory,
                          v1::ExpandReply& reply) {
  MILLRACE_RETURN_IF_ERROR(CheckExpandRequest(core, request));
  Expansion expansion(core, context, request, memory);
  for (const v1::ExpandRequest::Frontier& in : request.frontiers()) {
    MILLRACE_ASSIGN_OR_RETURN(const bool whole,
                              expansion.Answer(in, *reply.add_picks()));
    if (!whole) break;  // the caller asks for the rest
  }
  return absl::OkStatus();
}

}  // namespace millrace
