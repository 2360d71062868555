// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "server/core/core.h"
#include "server/load/admission.h"

namespace millrace {

namespace v1 {
class ExpandReply;
class ExpandRequest;
}  // namespace v1

// The unary call Expand as a function: draws neighbours from the lists of one
// partition, for as many of the request's nodes as fit into one reply. Never
// waits for another server. Statuses are those of docs/protocol.md.
// `context` is used to notice that the client has gone away. `memory` is the
// call's reservation, which grows before anything is allocated for the reply.
// Also fails like GrowTo().
absl::Status AnswerExpand(ServerCore& core,
                          const ::grpc::CallbackServerContext& context,
                          const v1::ExpandRequest& request,
                          Admission::Reservation& memory,
                          v1::ExpandReply& reply);

}  // namespace millrace
