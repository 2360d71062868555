// SPDX-License-Identifier: Apache-2.0
#include "server/request_call.h"

#include <cstdint>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "server/parse_request.h"

namespace millrace {

RequestCall::RequestCall(ServerCore& core, LiveCalls& calls,
                         ::grpc::CallbackServerContext* context)
    : core_(core),
      calls_(calls),
      context_(context),
      deadline_(core.DeadlineOf(*context)) {}

void RequestCall::Begin() {
  const absl::Status status = calls_.Enter(context_, deadline_);
  entered_ = status.ok();
  if (!entered_) return End(status);
  AwaitClient();
  StartRead(&message_);
}

void RequestCall::OnReadDone(bool ok) {
  ClientMoved();
  if (ok) return OnRequest();
  End(context_->IsCancelled()
          ? absl::CancelledError("the client gave up before its request came")
          : absl::InvalidArgumentError(
                "the call has no request\nsend one message"));
}

absl::StatusOr<Admission::Reservation> RequestCall::ReserveRequest(
    Admission& admission, const ::google::protobuf::Descriptor& type) const {
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t bytes,
                            RequestMemory(message_, type));
  return admission.Reserve(/*job=*/0, bytes);
}

void RequestCall::AwaitClient() {
  calls_.AwaitClient(context_, absl::Now() + core_.options.client_timeout);
}

void RequestCall::ClientMoved() { calls_.ClientMoved(context_); }

void RequestCall::Leave() {
  if (entered_) calls_.Leave(context_);
}

}  // namespace millrace
