// SPDX-License-Identifier: Apache-2.0
#include "client/remote/resolve_call.h"

#include <grpcpp/client_context.h>

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/call/hedged_call.h"
#include "common/grpc/call/unary_call.h"
#include "common/grpc/time.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

// State shared by the attempts of one hedged call.
struct Resolving {
  CallContext context;
  ResolveRequest request;
  grpc::ByteBuffer message;
  CallTimes times;
  CallDone done;
};

absl::Status TakeReply(const Resolving& resolving, grpc::ByteBuffer& bytes) {
  v1::ResolveReply reply;
  MILLRACE_RETURN_IF_ERROR(ParseMessage(bytes, reply));
  const ResolveRequest& request = resolving.request;
  const NodeType& type =
      resolving.context.manifest.schema.node_types[request.type];
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint64_t> ids,
                            ReadIds(reply.ids(), type.id_dtype(), 0,
                                    static_cast<uint64_t>(type.count), "ids"));
  if (ids.size() != request.positions.size()) {
    return absl::InternalError(StrCat("it resolved ", ids.size(), " of ",
                                      request.positions.size(),
                                      " original ids"));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    request.target[request.positions[i]] = ids[i];
  }
  return absl::OkStatus();
}

std::shared_ptr<Call> StartLeg(std::shared_ptr<const Resolving> resolving,
                               std::shared_ptr<FleetMember> member,
                               HedgedCallOptions::Events events) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(ToGrpcTime(resolving->times.deadline));
  return StartUnaryCall(
      {.method = "/millrace.v1.Sampler/Resolve",
       .request = resolving->message,
       .member = member,
       .context = std::move(context),
       .on_reply = [resolving, member, on_sign = std::move(events.on_sign)](
                       grpc::ByteBuffer& bytes) -> absl::Status {
         MILLRACE_RETURN_IF_ERROR(on_sign());
         resolving->context.retry.NoteAnswer(resolving->request.partition,
                                             SteadyNow());
         const absl::Status status = TakeReply(*resolving, bytes);
         return status.ok() ? status : ProtocolError(*member, status);
       },
       .done = std::move(events.done)});
}

grpc::ByteBuffer MessageOf(const Manifest& manifest,
                           const ResolveRequest& request) {
  v1::ResolveRequest message;
  message.set_node_type(static_cast<uint32_t>(request.type));
  message.set_partition(static_cast<uint32_t>(request.partition));
  message.set_fingerprint(manifest.fingerprint);
  AppendRaw(std::span(request.original_ids), *message.mutable_original_ids());
  return SerializeMessage(message);
}

}  // namespace

absl::StatusOr<std::vector<ResolveRequest>> SplitByLookup(
    const Manifest& manifest, TypeIndex type,
    std::span<const int64_t> original_ids, uint64_t* target) {
  const PartitionBook& book = manifest.books[type];
  std::vector<ResolveRequest> requests;
  std::vector<ResolveRequest> by_part(book.partition_count());
  const auto add = [&](uint64_t part) {
    ResolveRequest& request = by_part[part];
    if (request.positions.empty()) return;
    request.type = type;
    request.partition = static_cast<int>(part);
    request.target = target;
    requests.push_back(std::exchange(request, {}));
  };
  for (size_t i = 0; i < original_ids.size(); ++i) {
    const auto original = static_cast<uint64_t>(original_ids[i]);
    if (original >= book.node_count()) {
      return absl::InvalidArgumentError(StrCat(
          "seed ", original_ids[i], " at position ", i,
          " is out of range; node type ", manifest.schema.node_types[type].name,
          " has ", book.node_count(), " nodes"));
    }
    const uint64_t part = original / book.lookup_width();
    by_part[part].original_ids.push_back(original_ids[i]);
    by_part[part].positions.push_back(i);
    if (by_part[part].positions.size() == kMaxIdsPerCall) add(part);
  }
  for (size_t part = 0; part < by_part.size(); ++part) add(part);
  return requests;
}

absl::StatusOr<std::shared_ptr<Call>> StartResolveCall(
    const CallContext& context, ResolveRequest request, CallDone done) {
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<FleetMember> member,
      context.refusals.Pick(context.fleet, request.partition));
  grpc::ByteBuffer message = MessageOf(context.manifest, request);
  const CallTimes times = TimesOf(context, request.partition);
  const auto resolving = std::make_shared<const Resolving>(Resolving{
      context, std::move(request), std::move(message), times, std::move(done)});
  return StartHedgedCall(
      std::move(member),
      {.fleet = context.fleet,
       .hedging = context.hedging,
       .kind = Hedging::Kind::kLookup,
       .partition = resolving->request.partition,
       .deadline = resolving->times.deadline,
       .patience = resolving->times.patience,
       .start =
           [resolving](std::shared_ptr<FleetMember> replica,
                       HedgedCallOptions::Events events) {
             return StartLeg(resolving, std::move(replica), std::move(events));
           },
       .on_end =
           [resolving](const FleetMember& replica, SteadyTime start,
                       absl::Status status) {
             return NoteFailure(resolving->context, replica,
                                resolving->request.partition, start, status);
           },
       .done =
           [resolving](absl::Status status,
                       const std::shared_ptr<FleetMember>&) {
             resolving->done(std::move(status));
           }});
}

}  // namespace millrace
