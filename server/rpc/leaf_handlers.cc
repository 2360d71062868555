// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/leaf_handlers.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/seeds/edge_directory.h"
#include "common/sample/seeds/resolve_seeds.h"
#include "common/wire/ids.h"
#include "common/wire/manifest_proto.h"
#include "sampler.pb.h"
#include "server/core/call_scope.h"
#include "server/load/request_limits.h"
#include "server/rpc/parse_request.h"

namespace millrace {

absl::Status AnswerResolve(const ServerCore& core,
                           const v1::ResolveRequest& request,
                           v1::ResolveReply& reply) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  const Schema& schema = core.store->schema();
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("node type", request.node_type(), schema.node_types.size()));
  const auto type = static_cast<TypeIndex>(request.node_type());
  const auto part = static_cast<int>(request.partition());
  const PartitionBook& book = core.store->book(type);
  const uint64_t begin =
      std::min(part * book.lookup_width(), book.node_count());
  const uint64_t end = std::min(begin + book.lookup_width(), book.node_count());
  MILLRACE_ASSIGN_OR_RETURN(std::vector<uint64_t> ids,
                            ReadIds(request.original_ids(), DType::kUint64,
                                    begin, end, "original_ids"));
  for (uint64_t& id : ids) {
    MILLRACE_ASSIGN_OR_RETURN(id,
                              ReadLookup(*core.store, type, part, id - begin));
  }
  AppendIds(ids, schema.node_types[type].id_dtype(), *reply.mutable_ids());
  return absl::OkStatus();
}

absl::Status AnswerHasEdges(const ServerCore& core,
                            const ::grpc::CallbackServerContext& context,
                            const v1::HasEdgesRequest& request,
                            Admission::Reservation& memory,
                            v1::HasEdgesReply& reply) {
  MILLRACE_RETURN_IF_ERROR(
      core.CheckTarget(request.partition(), request.fingerprint()));
  const Schema& schema = core.store->schema();
  MILLRACE_RETURN_IF_ERROR(
      CheckNumber("relation", request.relation(), schema.relations.size()));
  const auto index = static_cast<RelationIndex>(request.relation());
  const Relation& relation = schema.relations[index];
  const NodeType& src_type = schema.node_types[relation.src];
  const NodeType& dst_type = schema.node_types[relation.dst];
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> src,
      ReadIds(request.src_ids(), src_type.id_dtype(), 0,
              static_cast<uint64_t>(src_type.count), "src_ids"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> dst,
      ReadIds(request.dst_ids(), dst_type.id_dtype(), 0,
              static_cast<uint64_t>(dst_type.count), "dst_ids"));
  if (src.size() != dst.size()) {
    return absl::InvalidArgumentError(
        StrCat(src.size(), " src_ids and ", dst.size(), " dst_ids"));
  }
  MILLRACE_RETURN_IF_ERROR(
      memory.GrowTo(memory.bytes() + kFindBytesPerPair * src.size()));
  CancelPoller poller([&context] { return CheckNotCancelled(context); });
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint8_t> found,
      FindEdges(*core.store, static_cast<int>(request.partition()),
                {index, src, dst}, poller));
  AppendRaw(std::span<const uint8_t>(found), *reply.mutable_found());
  return absl::OkStatus();
}

namespace {

void DescribeLoad(const ServerCore& core, v1::DescribeReply::Load& load) {
  const RecentCalls::Summary recent = core.metrics.recent_samples();
  load.set_sampling_busy_ratio(core.sample_pool.load().busy_ratio);
  load.set_batches_per_second(recent.per_second);
  load.set_sample_p50_seconds(absl::ToDoubleSeconds(recent.p50));
  load.set_sample_p99_seconds(absl::ToDoubleSeconds(recent.p99));
  load.set_sample_calls(static_cast<uint64_t>(core.sample_calls.count()));
  load.set_resident_bytes(ReadProcessState().resident_bytes);
}

// All but the store.
void DescribeState(const ServerCore& core, v1::DescribeReply& reply) {
  reply.set_version(MILLRACE_VERSION);
  reply.set_instance(core.instance);
  reply.set_protocol_version(kProtocolVersion);
  const std::map<int, std::string> damaged = core.damage.damaged();
  for (const int part : core.store->mapped_partitions()) {
    if (damaged.contains(part)) continue;
    reply.add_partitions(static_cast<uint32_t>(part));
  }
  for (const auto& [part, what] : damaged) {
    v1::DescribeReply::Damage& damage = *reply.add_damage();
    damage.set_partition(static_cast<uint32_t>(part));
    damage.set_what(what);
  }
  reply.set_draining(core.sample_calls.draining());
  reply.set_inflight_bytes(core.admission.in_use());
  reply.set_max_inflight_bytes(core.admission.limit());
  reply.set_uptime_seconds(absl::ToDoubleSeconds(SteadyNow() - core.started));
  DescribeLoad(core, *reply.mutable_load());
  reply.set_leaf_only(core.IsLeafOnly());
  if (core.device_failed) reply.set_failure("a GPU has failed");
}

}  // namespace

void AnswerDescribe(const ServerCore& core, v1::DescribeReply& reply) {
  ManifestToProto(core.store->manifest(), reply);
  DescribeState(core, reply);
}

FleetMemberInfo DescribeSelf(const ServerCore& core) {
  v1::DescribeReply reply;
  DescribeState(core, reply);
  FleetMemberInfo info;
  TakeAnswer(reply, info);
  info.state = reply.draining() ? FleetMemberInfo::State::kDraining
                                : FleetMemberInfo::State::kReady;
  return info;
}

}  // namespace millrace
