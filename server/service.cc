// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <string_view>
#include <utility>

#include "common/grpc/status.h"
#include "common/wire/error_info.h"
#include "sampler.grpc.pb.h"
#include "server/gather_call.h"
#include "server/leaf_answers.h"
#include "server/sample_call.h"

namespace millrace {
namespace {

// Runs `answer` on the leaf pool and finishes the call with its status.
template <typename Answer>
::grpc::ServerUnaryReactor* RunLeaf(ServerCore& core,
                                    ::grpc::CallbackServerContext* context,
                                    std::string_view method, Answer answer) {
  ::grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto finish = [&core, reactor, method](const absl::Status& status) {
    core.metrics.CountCall(method, status);
    reactor->Finish(ToGrpcStatus(status));
  };
  if (core.leaf_calls.fetch_add(1) >= core.options.max_leaf_calls) {
    core.leaf_calls.fetch_sub(1);
    finish(WithErrorInfo(
        absl::ResourceExhaustedError("the server is busy with leaf calls"),
        {.partition = std::nullopt, .retry_after = absl::Milliseconds(50)}));
    return reactor;
  }
  const bool queued = core.leaf_pool.TrySubmit([&core, context, finish,
                                                answer = std::move(answer)] {
    const absl::Status status = context->IsCancelled()
                                    ? absl::CancelledError("the caller gave up")
                                    : answer();
    core.leaf_calls.fetch_sub(1);
    finish(status);
  });
  if (!queued) {
    core.leaf_calls.fetch_sub(1);
    finish(absl::UnavailableError("the server is shutting down"));
  }
  return reactor;
}

using RawMethods = v1::Sampler::WithRawCallbackMethod_Sample<
    v1::Sampler::WithRawCallbackMethod_Gather<
        v1::Sampler::WithCallbackMethod_Expand<
            v1::Sampler::WithCallbackMethod_Resolve<
                v1::Sampler::WithCallbackMethod_Describe<
                    v1::Sampler::Service>>>>>;

class SamplerService final : public RawMethods {
 public:
  explicit SamplerService(ServerCore& core) : core_(core) {}

  ::grpc::ServerWriteReactor<::grpc::ByteBuffer>* Sample(
      ::grpc::CallbackServerContext* context,
      const ::grpc::ByteBuffer* request) override {
    return new SampleCall(core_, context, *request);
  }

  ::grpc::ServerWriteReactor<::grpc::ByteBuffer>* Gather(
      ::grpc::CallbackServerContext* context,
      const ::grpc::ByteBuffer* request) override {
    return new GatherCall(core_, context, *request);
  }

  ::grpc::ServerUnaryReactor* Expand(::grpc::CallbackServerContext* context,
                                     const v1::ExpandRequest* request,
                                     v1::ExpandReply* reply) override {
    return RunLeaf(core_, context, "Expand", [this, context, request, reply] {
      return AnswerExpand(core_, *context, *request, *reply);
    });
  }

  ::grpc::ServerUnaryReactor* Resolve(::grpc::CallbackServerContext* context,
                                      const v1::ResolveRequest* request,
                                      v1::ResolveReply* reply) override {
    return RunLeaf(core_, context, "Resolve", [this, request, reply] {
      return AnswerResolve(core_, *request, *reply);
    });
  }

  ::grpc::ServerUnaryReactor* Describe(::grpc::CallbackServerContext* context,
                                       const v1::DescribeRequest*,
                                       v1::DescribeReply* reply) override {
    // At once and uncounted, so that a busy server does not look dead.
    ::grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const absl::Status status = AnswerDescribe(core_, *reply);
    core_.metrics.CountCall("Describe", status);
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

 private:
  ServerCore& core_;
};

}  // namespace

std::unique_ptr<::grpc::Service> MakeSamplerService(ServerCore& core) {
  return std::make_unique<SamplerService>(core);
}

}  // namespace millrace
