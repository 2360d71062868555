// SPDX-License-Identifier: Apache-2.0
// Requests as answered by a server. Input: the number of the call, then the
// message.
#include <array>
#include <span>
#include <string>

#include "common/base/check.h"
#include "common/wire/frame.h"
#include "sampler.pb.h"
#include "server/rpc/expand_handler.h"
#include "server/rpc/leaf_handlers.h"
#include "server/rpc/parse_request.h"
#include "tests/fuzz/support/in_process.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

// The store is intact, so any error must be about the request.
void CheckStatus(const absl::Status& status) {
  const absl::StatusCode code = status.code();
  MILLRACE_CHECK(code != absl::StatusCode::kInternal &&
                 code != absl::StatusCode::kUnknown &&
                 code != absl::StatusCode::kDataLoss);
}

void CheckStream(const StreamedAnswer& answer) {
  CheckStatus(answer.status);
  for (const std::string& message : answer.messages) {
    const std::array<std::span<const std::byte>, 1> slices = {
        std::as_bytes(std::span(message))};
    MILLRACE_CHECK(ParseFrame(slices).ok());
  }
}

// Calls `answer(message, memory, reply)` like server/rpc/service.cc.
template <typename Request, typename Reply, typename Answer>
void AnswerLeaf(std::string_view bytes, Answer answer) {
  const ::grpc::Slice slice(bytes.data(), bytes.size());
  ::grpc::ByteBuffer message(&slice, 1);
  const auto needed = RequestMemory(message, *Request::descriptor());
  Request request;
  const bool parsed = ParseRequest(message, request).ok();
  // A message that cannot be scanned must not be parsed, or it would take
  // memory that was not reserved.
  MILLRACE_CHECK(needed.ok() || !parsed);
  if (!parsed) return;
  auto memory = RichServer().leaf_admission.Reserve(
      {.client = "client", .end = [] {}}, 0, *needed);
  if (!memory.ok()) return;
  Reply reply;
  const absl::Status status = answer(request, *memory, reply);
  CheckStatus(status);
  if (status.ok()) reply.SerializeAsString();
}

void Run(Input input) {
  ServerCore& core = RichServer();
  const uint8_t method = input.Byte();
  const std::string_view bytes = input.Rest();
  switch (method % 5) {
    case 0:
      return CheckStream(AnswerSample(bytes));
    case 1:
      return CheckStream(AnswerGather(bytes));
    case 2:
      return AnswerLeaf<v1::ExpandRequest, v1::ExpandReply>(
          bytes, [&](const auto& request, auto& memory, auto& reply) {
            const ::grpc::CallbackServerContext context;
            return AnswerExpand(core, context, request, memory, reply);
          });
    case 3:
      return AnswerLeaf<v1::ResolveRequest, v1::ResolveReply>(
          bytes, [&](const auto& request, auto&, auto& reply) {
            return AnswerResolve(core, request, reply);
          });
    default:
      return AnswerLeaf<v1::HasEdgesRequest, v1::HasEdgesReply>(
          bytes, [&](const auto& request, auto& memory, auto& reply) {
            const ::grpc::CallbackServerContext context;
            return AnswerHasEdges(core, context, request, memory, reply);
          });
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
