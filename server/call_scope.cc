// SPDX-License-Identifier: Apache-2.0
#include "server/call_scope.h"

#include "absl/time/clock.h"

namespace millrace {

absl::Status CallScope::CheckLive() const {
  if (call.IsCancelled()) return absl::CancelledError("the client gave up");
  if (absl::Now() >= deadline) {
    return absl::DeadlineExceededError("the deadline passed");
  }
  return absl::OkStatus();
}

std::unique_ptr<::grpc::ClientContext> CallScope::PeerContext() const {
  std::unique_ptr<::grpc::ClientContext> context =
      ::grpc::ClientContext::FromCallbackServerContext(call);
  context->set_deadline(absl::ToChronoTime(deadline));
  return context;
}

}  // namespace millrace
