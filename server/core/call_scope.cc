// SPDX-License-Identifier: Apache-2.0
#include "server/core/call_scope.h"

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/grpc/request_id.h"
#include "common/grpc/time.h"

namespace millrace {

absl::Status CheckNotCancelled(const ::grpc::CallbackServerContext& call) {
  return call.IsCancelled() ? absl::CancelledError("the client gave up")
                            : absl::OkStatus();
}

absl::Status CallScope::CheckNotCancelled() const {
  MILLRACE_RETURN_IF_ERROR(millrace::CheckNotCancelled(call));
  if (SteadyNow() >= deadline) {
    return absl::DeadlineExceededError("the deadline passed");
  }
  return absl::OkStatus();
}

std::unique_ptr<::grpc::ClientContext> CallScope::PeerContext() const {
  std::unique_ptr<::grpc::ClientContext> context =
      ::grpc::ClientContext::FromCallbackServerContext(call);
  context->set_deadline(ToGrpcTime(deadline));
  SetRequestId(request_id, *context);
  return context;
}

}  // namespace millrace
