// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "server/admission.h"
#include "server/core.h"

namespace millrace {

namespace v1 {
class ExpandReply;
class ExpandRequest;
}  // namespace v1

// The unary call Expand as a function: draws neighbours from the lists of one
// partition, for as many nodes of the request as fit one reply. Waits for no
// other server. Statuses are those of docs/protocol.md.
// `context`: to notice that nobody waits any more. `memory`: of the call; grows
// before what is made for the reply does, with the errors of GrowTo.
absl::Status AnswerExpand(ServerCore& core,
                          const ::grpc::CallbackServerContext& context,
                          const v1::ExpandRequest& request,
                          Admission::Reservation& memory,
                          v1::ExpandReply& reply);

}  // namespace millrace
