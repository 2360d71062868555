// SPDX-License-Identifier: Apache-2.0
#include "server/service.h"

#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/wire/error_info.h"
#include "sampler.grpc.pb.h"
#include "server/gather_call.h"
#include "server/leaf_answers.h"
#include "server/sample_call.h"

namespace millrace {
namespace {

// A unary call that counts, and keeps its memory reserved, until its reply,
// too, is gone: replies that slow callers do not take are memory.
class LeafCall final : public ::grpc::ServerUnaryReactor {
 public:
  LeafCall(ServerCore& core, std::string_view method)
      : core_(core), method_(method), before_(core.leaf_calls.fetch_add(1)) {}

  // Whether it may run. RESOURCE_EXHAUSTED: too many do, or they hold too much.
  absl::Status Enter(uint64_t request_bytes) {
    if (before_ >= core_.options.max_leaf_calls) {
      return WithErrorInfo(
          absl::ResourceExhaustedError(
              StrCat("the server is busy: ", before_, " of at most ",
                     core_.options.max_leaf_calls, " leaf calls are running")),
          {.partition = std::nullopt, .retry_after = absl::Milliseconds(50)});
    }
    MILLRACE_ASSIGN_OR_RETURN(memory_, core_.ReserveLeaf(request_bytes));
    return absl::OkStatus();
  }
  // One that is refused counts no longer.
  void Refuse(const absl::Status& status) {
    counted_ = false;
    core_.leaf_calls.fetch_sub(1);
    End(status);
  }

  void End(const absl::Status& status) {
    core_.metrics.CountCall(method_, status);
    Finish(ToGrpcStatus(status));
  }

  Admission::Reservation& memory() { return memory_; }

  void OnDone() override {
    if (counted_) core_.leaf_calls.fetch_sub(1);
    delete this;
  }

 private:
  ServerCore& core_;
  const std::string_view method_;
  const int before_;
  bool counted_ = true;
  Admission::Reservation memory_;
};

// Runs `answer`, which gets the memory of the call, on the leaf pool and
// finishes the call with its status.
template <typename Answer>
::grpc::ServerUnaryReactor* RunLeaf(ServerCore& core,
                                    ::grpc::CallbackServerContext* context,
                                    std::string_view method,
                                    uint64_t request_bytes, Answer answer) {
  auto* call = new LeafCall(core, method);  // deletes itself
  if (const absl::Status status = call->Enter(request_bytes); !status.ok()) {
    call->Refuse(status);
    return call;
  }
  const bool queued =
      core.leaf_pool.TrySubmit([context, call, answer = std::move(answer)] {
        call->End(context->IsCancelled()
                      ? absl::CancelledError("the caller gave up")
                      : answer(call->memory()));
      });
  if (!queued) {
    call->End(absl::UnavailableError("the server is shutting down"));
  }
  return call;
}

using RawMethods = v1::Sampler::WithRawCallbackMethod_Sample<
    v1::Sampler::WithRawCallbackMethod_Gather<
        v1::Sampler::WithCallbackMethod_Expand<
            v1::Sampler::WithCallbackMethod_HasEdges<
                v1::Sampler::WithCallbackMethod_Resolve<
                    v1::Sampler::WithCallbackMethod_Describe<
                        v1::Sampler::Service>>>>>>;

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
    return RunLeaf(
        core_, context, "Expand", request->ByteSizeLong(),
        [this, context, request, reply](Admission::Reservation& memory) {
          return AnswerExpand(core_, *context, *request, memory, *reply);
        });
  }

  ::grpc::ServerUnaryReactor* HasEdges(::grpc::CallbackServerContext* context,
                                       const v1::HasEdgesRequest* request,
                                       v1::HasEdgesReply* reply) override {
    return RunLeaf(core_, context, "HasEdges", request->ByteSizeLong(),
                   [this, request, reply](Admission::Reservation&) {
                     return AnswerHasEdges(core_, *request, *reply);
                   });
  }

  ::grpc::ServerUnaryReactor* Resolve(::grpc::CallbackServerContext* context,
                                      const v1::ResolveRequest* request,
                                      v1::ResolveReply* reply) override {
    return RunLeaf(core_, context, "Resolve", request->ByteSizeLong(),
                   [this, request, reply](Admission::Reservation&) {
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
