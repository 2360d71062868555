// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/grpc/unary_call.h"
#include "sampler.pb.h"
#include "server/answer_expand.h"
#include "server/call_scope.h"
#include "server/gather_call.h"
#include "server/leaf_answers.h"
#include "server/limits.h"
#include "server/parse_request.h"
#include "server/request_call.h"
#include "server/sample_call.h"

namespace millrace {
namespace {

// What a call with one reply shares.
class UnaryCall : public RequestCall {
 public:
  void OnDone() final {
    reply_.Clear();
    memory_ = {};
    Leave();
    delete this;
  }

 protected:
  UnaryCall(ServerCore& core, Kind kind, ::grpc::CallbackServerContext* context,
            std::string_view method)
      : RequestCall(core, kind, context), method_(method) {}

  // Ends the call, with reply() if `status` is OK.
  void End(const absl::Status& status) final {
    core().metrics.CountCall(method_, status);
    if (!status.ok()) return Finish(ToGrpcStatus(status));
    AwaitClient();
    StartWriteAndFinish(&reply_, ::grpc::WriteOptions(), ::grpc::Status::OK);
  }

  absl::Status SetReply(const ::google::protobuf::MessageLite& reply) {
    const size_t bytes = reply.ByteSizeLong();
    if (bytes > static_cast<size_t>(kMaxPeerMessageBytes)) {
      return absl::FailedPreconditionError(
          StrCat("the answer takes ", bytes, " bytes, the limit is ",
                 kMaxPeerMessageBytes, "\nuse smaller fanouts"));
    }
    reply_ = SerializeMessage(reply);
    return absl::OkStatus();
  }

  Admission::Reservation& memory() { return memory_; }

 private:
  const std::string_view method_;
  // Kept until the reply, too, is gone: replies that slow callers do not take
  // are memory.
  Admission::Reservation memory_;
  ::grpc::ByteBuffer reply_;
};

// A call that is answered on the leaf pool.
template <typename Request, typename Reply>
class LeafCall final : public UnaryCall {
 public:
  // Gets the memory of the call too.
  using Answer = std::function<absl::Status(const Request&,
                                            Admission::Reservation&, Reply&)>;

  LeafCall(ServerCore& core, ::grpc::CallbackServerContext* context,
           std::string_view method, Answer answer)
      : UnaryCall(core, {core.reading_calls, core.leaf_calls}, context, method),
        answer_(std::move(answer)) {
    Begin();
  }

 private:
  void OnRequest() override {
    if (const absl::Status status = Reserve(); !status.ok()) {
      return End(status);
    }
    if (!core().leaf_pool.TrySubmit([this] { End(MakeReply()); })) {
      End(absl::UnavailableError("the server is shutting down"));
    }
  }

  // RESOURCE_EXHAUSTED: the calls that run hold too much.
  absl::Status Reserve() {
    MILLRACE_ASSIGN_OR_RETURN(memory(), ReserveRequest(core().leaf_admission,
                                                       *Request::descriptor()));
    return absl::OkStatus();
  }

  absl::Status MakeReply() {
    MILLRACE_RETURN_IF_ERROR(CheckWanted(context()));
    Request request;
    MILLRACE_RETURN_IF_ERROR(ParseRequest(message(), request));
    Reply reply;
    MILLRACE_RETURN_IF_ERROR(answer_(request, memory(), reply));
    return SetReply(reply);
  }

  const Answer answer_;
};

// Answered at once and counted apart, so that a busy server does not look dead.
class DescribeCall final : public UnaryCall {
 public:
  DescribeCall(ServerCore& core, ::grpc::CallbackServerContext* context)
      : UnaryCall(core, {core.reading_describe_calls, core.describe_calls},
                  context, "Describe") {
    Begin();
  }

 private:
  void OnRequest() override { End(MakeReply()); }

  absl::Status MakeReply() {
    if (message().Length() > kMaxDescribeBytes) {
      return absl::InvalidArgumentError(
          StrCat("the request has ", message().Length(),
                 " bytes; a DescribeRequest has at most ", kMaxDescribeBytes));
    }
    v1::DescribeRequest request;
    MILLRACE_RETURN_IF_ERROR(ParseRequest(message(), request));
    v1::DescribeReply reply;
    MILLRACE_RETURN_IF_ERROR(AnswerDescribe(core(), reply));
    return SetReply(reply);
  }
};

using Context = ::grpc::CallbackServerContext;

class SamplerService final : public ::grpc::Service {
 public:
  explicit SamplerService(ServerCore& core) {
    Add("/millrace.v1.Sampler/Sample",
        [&core](Context* context) { return new SampleCall(core, context); });
    Add("/millrace.v1.Sampler/Gather",
        [&core](Context* context) { return new GatherCall(core, context); });
    Add("/millrace.v1.Sampler/Expand", [&core](Context* context) {
      return new LeafCall<v1::ExpandRequest, v1::ExpandReply>(
          core, context, "Expand",
          [&core, context](const auto& request, auto& memory, auto& reply) {
            return AnswerExpand(core, *context, request, memory, reply);
          });
    });
    Add("/millrace.v1.Sampler/HasEdges", [&core](Context* context) {
      return new LeafCall<v1::HasEdgesRequest, v1::HasEdgesReply>(
          core, context, "HasEdges",
          [&core, context](const auto& request, auto& memory, auto& reply) {
            return AnswerHasEdges(core, *context, request, memory, reply);
          });
    });
    Add("/millrace.v1.Sampler/Resolve", [&core](Context* context) {
      return new LeafCall<v1::ResolveRequest, v1::ResolveReply>(
          core, context, "Resolve",
          [&core](const auto& request, auto&, auto& reply) {
            return AnswerResolve(core, request, reply);
          });
    });
    Add("/millrace.v1.Sampler/Describe",
        [&core](Context* context) { return new DescribeCall(core, context); });
  }

 private:
  // As the generated code does for a call with streams both ways, which any
  // call can be served as; see RequestCall.
  template <typename Start>
  void Add(const char* path, Start start) {
    using Bytes = ::grpc::ByteBuffer;
    AddMethod(new ::grpc::internal::RpcServiceMethod(
        path, ::grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodRawCallback(
        count_++, new ::grpc::internal::CallbackBidiHandler<Bytes, Bytes>(
                      std::move(start)));
  }

  int count_ = 0;  // methods
};

}  // namespace

std::unique_ptr<::grpc::Service> MakeSamplerService(ServerCore& core) {
  return std::make_unique<SamplerService>(core);
}

}  // namespace millrace
