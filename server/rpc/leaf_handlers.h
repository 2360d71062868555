// SPDX-License-Identifier: Apache-2.0
// The shorter unary calls as functions; the longest is in expand_handler.h.
// None of them waits for another server. Statuses are those of
// docs/protocol.md.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "common/grpc/fleet/fleet_member.h"
#include "server/core/core.h"
#include "server/load/admission.h"

namespace millrace {

namespace v1 {
class DescribeReply;
class HasEdgesReply;
class HasEdgesRequest;
class ResolveReply;
class ResolveRequest;
}  // namespace v1

absl::Status AnswerResolve(const ServerCore& core,
                           const v1::ResolveRequest& request,
                           v1::ResolveReply& reply);

// `context` is used to notice that the client has gone away. `memory` is the
// call's reservation, which grows before anything is allocated for the reply.
// Also fails like GrowTo().
absl::Status AnswerHasEdges(const ServerCore& core,
                            const ::grpc::CallbackServerContext& context,
                            const v1::HasEdgesRequest& request,
                            Admission::Reservation& memory,
                            v1::HasEdgesReply& reply);

void AnswerDescribe(const ServerCore& core, v1::DescribeReply& reply);

// What a fleet would know of this server; without an address.
FleetMemberInfo DescribeSelf(const ServerCore& core);

}  // namespace millrace
