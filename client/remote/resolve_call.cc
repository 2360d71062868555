// SPDX-License-Identifier: Apache-2.0
#include "client/remote/resolve_call.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "client/remote/call_failure.h"
#include "client/remote/traced_call.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/call/hedged_call.h"
#include "common/grpc/call/unary_call.h"
#include "common/grpc/request_id.h"
#include "common/grpc/time.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

constexpr char kResolve[] = "/millrace.v1.Sampler/Resolve";

grpc::ByteBuffer MessageOf(const Manifest& manifest,
                           const ResolveRequest& request) {
  v1::ResolveRequest message;
  message.set_node_type(static_cast<uint32_t>(request.type));
  message.set_partition(static_cast<uint32_t>(request.partition));
  message.set_fingerprint(manifest.fingerprint);
  AppendRaw(std::span(request.original_ids), *message.mutable_original_ids());
  return SerializeMessage(message);
}

class ResolveCall final : public HedgedRequest {
 public:
  ResolveCall(const CallContext& context, ResolveRequest request,
              SteadyTime deadline, CallDone done)
      : context_(context),
        message_(MessageOf(context.manifest, request)),
        request_(std::move(request)),
        deadline_(deadline),
        done_(std::move(done)),
        request_id_(context.request_id),
        traced_(context_, kResolve, request_.partition) {}

  std::shared_ptr<Call> Send(std::shared_ptr<FleetMember> replica,
                             std::shared_ptr<CallObserver> observer) override {
    traced_.NoteSent();
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(ToGrpcTime(deadline_));
    SetRequestId(request_id_, *context);
    const auto on_reply = [this, replica](grpc::ByteBuffer& bytes) {
      context_.retry.NoteAnswer(request_.partition, context_.timer.Now());
      const absl::Status status = TakeReply(bytes);
      return status.ok() ? status : ProtocolError(*replica, status);
    };
    return StartUnaryCall({.method = kResolve,
                           .request = message_,
                           .member = replica,
                           .context = std::move(context),
                           .on_reply = on_reply,
                           .observer = std::move(observer)});
  }

  absl::Status Judge(const FleetMember& replica, SteadyTime start,
                     absl::Status status) override {
    return NoteEnd(context_, {replica, request_.partition, start}, status);
  }

  void Finish(absl::Status status,
              std::shared_ptr<FleetMember> replica) override {
    traced_.NoteEnd(replica.get());
    done_(std::move(status));
  }

 private:
  absl::Status TakeReply(grpc::ByteBuffer& bytes) const;

  const CallContext context_;
  const grpc::ByteBuffer message_;
  const ResolveRequest request_;
  const SteadyTime deadline_;
  const CallDone done_;
  const std::string request_id_;
  TracedCall traced_;
};

absl::Status ResolveCall::TakeReply(grpc::ByteBuffer& bytes) const {
  v1::ResolveReply reply;
  MILLRACE_RETURN_IF_ERROR(ParseMessage(bytes, reply));
  const NodeType& type = context_.manifest.schema.node_types[request_.type];
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint64_t> ids,
                            ReadIds(reply.ids(), type.id_dtype(), 0,
                                    static_cast<uint64_t>(type.count), "ids"));
  if (ids.size() != request_.positions.size()) {
    return absl::InternalError(StrCat("it resolved ", ids.size(), " of ",
                                      request_.positions.size(),
                                      " original ids"));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    request_.target[request_.positions[i]] = ids[i];
  }
  return absl::OkStatus();
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
  const HedgedCallOptions options =
      HedgedOptions(context, Hedging::Kind::kLookup, request.partition);
  return StartHedgedCall(
      options, std::move(member),
      std::make_shared<ResolveCall>(context, std::move(request),
                                    options.deadline, std::move(done)));
}

}  // namespace millrace
