// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/reply_rpcs.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/call/unary_call.h"
#include "sampler.pb.h"
#include "server/core/call_scope.h"
#include "server/load/request_limits.h"
#include "server/rpc/expand_handler.h"
#include "server/rpc/leaf_handlers.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

absl::StatusOr<::grpc::ByteBuffer> Serialize(
    const ::google::protobuf::MessageLite& reply) {
  const size_t bytes = reply.ByteSizeLong();
  if (bytes > static_cast<size_t>(kMaxPeerMessageBytes)) {
    return absl::FailedPreconditionError(
        StrCat("the answer takes ", bytes, " bytes; the limit is ",
               kMaxPeerMessageBytes, "\nuse smaller fanouts"));
  }
  return SerializeMessage(reply);
}

// Answers a call on the leaf pool.
template <typename Request, typename Reply>
class LeafReply final : public ReplyMaker {
 public:
  using Answer = absl::Status (*)(IncomingCall&, const Request&, Reply&);

  LeafReply(IncomingCall& call, Answer answer) : call_(call), answer_(answer) {}

  absl::StatusOr<ThreadPool*> Prepare() override {
    MILLRACE_RETURN_IF_ERROR(call_.ReserveRequest(call_.core().leaf_admission,
                                                  *Request::descriptor()));
    return &call_.core().leaf_pool;
  }

  absl::StatusOr<::grpc::ByteBuffer> Make() override {
    MILLRACE_RETURN_IF_ERROR(CheckNotCancelled(call_.context()));
    Request request;
    MILLRACE_RETURN_IF_ERROR(ParseRequest(call_.message(), request));
    Reply reply;
    MILLRACE_RETURN_IF_ERROR(answer_(call_, request, reply));
    return Serialize(reply);
  }

 private:
  IncomingCall& call_;
  const Answer answer_;
};

// Answers at once, unless the store must be read again, and has a limit of its
// own, so that a busy server does not look dead.
class DescribeReplyMaker final : public ReplyMaker {
 public:
  explicit DescribeReplyMaker(IncomingCall& call) : call_(call) {}

  absl::StatusOr<ThreadPool*> Prepare() override {
    ::grpc::ByteBuffer& message = call_.message();
    if (message.Length() > kMaxDescribeBytes) {
      return absl::InvalidArgumentError(
          StrCat("the request has ", message.Length(),
                 " bytes; a DescribeRequest has at most ", kMaxDescribeBytes));
    }
    v1::DescribeRequest request;
    MILLRACE_RETURN_IF_ERROR(ParseRequest(message, request));
    look_for_splits_ = request.look_for_splits();
    return look_for_splits_ ? &call_.core().describe_pool : nullptr;
  }

  absl::StatusOr<::grpc::ByteBuffer> Make() override {
    ServerCore& core = call_.core();
    if (look_for_splits_) core.store.LookForSplits(*core.store);
    v1::DescribeReply reply;
    AnswerDescribe(core, reply);
    return Serialize(reply);
  }

 private:
  IncomingCall& call_;
  bool look_for_splits_ = false;
};

using Maker = std::unique_ptr<ReplyMaker>;

Maker MakeExpand(IncomingCall& call) {
  using Leaf = LeafReply<v1::ExpandRequest, v1::ExpandReply>;
  return std::make_unique<Leaf>(
      call, [](IncomingCall& from, const v1::ExpandRequest& request,
               v1::ExpandReply& reply) {
        return AnswerExpand(from.core(), from.context(), request, from.memory(),
                            reply);
      });
}

Maker MakeHasEdges(IncomingCall& call) {
  using Leaf = LeafReply<v1::HasEdgesRequest, v1::HasEdgesReply>;
  return std::make_unique<Leaf>(
      call, [](IncomingCall& from, const v1::HasEdgesRequest& request,
               v1::HasEdgesReply& reply) {
        return AnswerHasEdges(from.core(), from.context(), request,
                              from.memory(), reply);
      });
}

Maker MakeResolve(IncomingCall& call) {
  using Leaf = LeafReply<v1::ResolveRequest, v1::ResolveReply>;
  return std::make_unique<Leaf>(
      call, [](IncomingCall& from, const v1::ResolveRequest& request,
               v1::ResolveReply& reply) {
        return AnswerResolve(from.core(), request, reply);
      });
}

Maker MakeDescribe(IncomingCall& call) {
  return std::make_unique<DescribeReplyMaker>(call);
}

}  // namespace

std::vector<ReplyRpc> ReplyRpcs(ServerCore& core) {
  const IncomingCall::Limits leaf = {core.reading_calls, core.leaf_calls};
  const IncomingCall::Limits describe = {core.reading_describe_calls,
                                         core.describe_calls};
  return {{"Expand", leaf, MakeExpand},
          {"HasEdges", leaf, MakeHasEdges},
          {"Resolve", leaf, MakeResolve},
          {"Describe", describe, MakeDescribe}};
}

}  // namespace millrace
