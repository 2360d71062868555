// SPDX-License-Identifier: Apache-2.0
// The shorter unary calls as functions; answer_expand.h is the longest. None
// waits for another server.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "server/admission.h"
#include "server/core.h"

namespace millrace {

namespace v1 {
class DescribeReply;
class HasEdgesReply;
class HasEdgesRequest;
class ResolveReply;
class ResolveRequest;
}  // namespace v1

// Statuses are those of docs/protocol.md. `context`: to notice that nobody
// waits any more. `memory`: of the call; grows before what is made for the
// reply does, with the errors of GrowTo.
absl::Status AnswerResolve(const ServerCore& core,
                           const v1::ResolveRequest& request,
                           v1::ResolveReply& reply);
absl::Status AnswerHasEdges(const ServerCore& core,
                            const ::grpc::CallbackServerContext& context,
                            const v1::HasEdgesRequest& request,
                            Admission::Reservation& memory,
                            v1::HasEdgesReply& reply);
absl::Status AnswerDescribe(const ServerCore& core, v1::DescribeReply& reply);

}  // namespace millrace
