// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/service.h"

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/call/unary_call.h"
#include "common/grpc/status.h"
#include "sampler.grpc.pb.h"
#include "server/core/call_scope.h"
#include "server/load/request_limits.h"
#include "server/rpc/answer_expand.h"
#include "server/rpc/gather_call.h"
#include "server/rpc/leaf_answers.h"
#include "server/rpc/parse_request.h"
#include "server/rpc/request_call.h"
#include "server/rpc/sample_call.h"

namespace millrace {
namespace {

// Common part of the calls with a single reply.
class UnaryCall : public RequestCall {
 public:
  void OnDone() final {
    // Freed here, because a slow reader may make a reply last until the end.
    reply_.Clear();
    Leave();
    delete this;
  }

 protected:
  UnaryCall(ServerCore& core, Kind kind, ::grpc::CallbackServerContext* context,
            std::string_view method)
      : RequestCall(core, kind, context), method_(method) {}

  // Ends the call, and sends reply() if `status` is OK.
  void End(const absl::Status& status) final {
    core().metrics.CountCall(method_, status);
    if (!status.ok()) return Finish(ToGrpcStatus(core().NoteDamage(status)));
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

 private:
  const std::string_view method_;
  ::grpc::ByteBuffer reply_;
};

// A call answered on the leaf pool.
template <typename Request, typename Reply>
class LeafCall final : public UnaryCall {
 public:
  // The function that answers; also receives the memory reserved for the call.
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
    const absl::Status status =
        ReserveRequest(core().leaf_admission, *Request::descriptor());
    if (!status.ok()) return End(status);
    Submit(core().leaf_pool, [this] { End(MakeReply()); });
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

// Answered at once, unless the store must be read again, and limited
// separately, so that a busy server does not look dead.
class DescribeCall final : public UnaryCall {
 public:
  DescribeCall(ServerCore& core, ::grpc::CallbackServerContext* context)
      : UnaryCall(core, {core.reading_describe_calls, core.describe_calls},
                  context, "Describe") {
    Begin();
  }

 private:
  void OnRequest() override {
    v1::DescribeRequest request;
    if (const absl::Status status = Parse(request); !status.ok()) {
      return End(status);
    }
    if (!request.look_for_splits()) return End(MakeReply());
    Submit(core().look_pool, [this] {
      core().store.LookForSplits(*core().store);
      End(MakeReply());
    });
  }

  absl::Status Parse(v1::DescribeRequest& request) {
    if (message().Length() > kMaxDescribeBytes) {
      return absl::InvalidArgumentError(
          StrCat("the request has ", message().Length(),
                 " bytes; a DescribeRequest has at most ", kMaxDescribeBytes));
    }
    return ParseRequest(message(), request);
  }

  absl::Status MakeReply() {
    v1::DescribeReply reply;
    MILLRACE_RETURN_IF_ERROR(AnswerDescribe(core(), reply));
    return SetReply(reply);
  }
};

using Context = ::grpc::GenericCallbackServerContext;

// All calls go through gRPC's generic service, because only that starts a call
// before its request has arrived: see RequestCall.
class SamplerCalls final : public ::grpc::CallbackGenericService {
 public:
  explicit SamplerCalls(ServerCore& core) {
    Add("Sample",
        [&core](Context* context) { return new SampleCall(core, context); });
    Add("Gather",
        [&core](Context* context) { return new GatherCall(core, context); });
    Add("Expand", [&core](Context* context) {
      return new LeafCall<v1::ExpandRequest, v1::ExpandReply>(
          core, context, "Expand",
          [&core, context](const auto& request, auto& memory, auto& reply) {
            return AnswerExpand(core, *context, request, memory, reply);
          });
    });
    Add("HasEdges", [&core](Context* context) {
      return new LeafCall<v1::HasEdgesRequest, v1::HasEdgesReply>(
          core, context, "HasEdges",
          [&core, context](const auto& request, auto& memory, auto& reply) {
            return AnswerHasEdges(core, *context, request, memory, reply);
          });
    });
    Add("Resolve", [&core](Context* context) {
      return new LeafCall<v1::ResolveRequest, v1::ResolveReply>(
          core, context, "Resolve",
          [&core](const auto& request, auto&, auto& reply) {
            return AnswerResolve(core, request, reply);
          });
    });
    Add("Describe",
        [&core](Context* context) { return new DescribeCall(core, context); });
  }

  // For unknown methods the base class answers UNIMPLEMENTED.
  ::grpc::ServerGenericBidiReactor* CreateReactor(Context* context) override {
    const auto found = starts_.find(context->method());
    return found == starts_.end()
               ? ::grpc::CallbackGenericService::CreateReactor(context)
               : found->second(context);
  }

 private:
  // Creates a call, which deletes itself.
  using Start = std::function<RequestCall*(Context*)>;

  void Add(const char* method, Start start) {
    starts_.emplace(StrCat("/", v1::Sampler::service_full_name(), "/", method),
                    std::move(start));
  }

  absl::flat_hash_map<std::string, Start> starts_;  // by path
};

// A host (:authority) that nobody can call, because it cannot be guessed.
//
// Reflection lists the services whose methods are registered by name, and a
// generic service has none. So the generated service is registered as well, but
// only for this host: calls to it would be read and parsed by gRPC without any
// of our limits.
std::string UnknownHost() {
  std::random_device random;
  std::string host;
  for (int i = 0; i < 4; ++i) host += absl::StrFormat("%08x", random());
  return host + ".invalid";
}

}  // namespace

SamplerService::SamplerService(ServerCore& core)
    : calls_(std::make_unique<SamplerCalls>(core)),
      listed_at_(UnknownHost()),
      listing_(std::make_unique<v1::Sampler::CallbackService>()) {}

SamplerService::~SamplerService() = default;

void SamplerService::Register(::grpc::ServerBuilder& builder) {
  builder.RegisterCallbackGenericService(calls_.get());
  builder.RegisterService(listed_at_, listing_.get());
}

}  // namespace millrace
