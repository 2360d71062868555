// SPDX-License-Identifier: Apache-2.0
#include "server/request_call.h"

#include <cstdint>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "server/parse_request.h"

namespace millrace {

RequestCall::RequestCall(ServerCore& core, Kind kind,
                         ::grpc::CallbackServerContext* context)
    : core_(core),
      kind_(kind),
      context_(context),
      deadline_(core.DeadlineOf(*context)) {}

void RequestCall::Begin() {
  if (const absl::Status status = EnterReading(); !status.ok()) {
    return End(status);
  }
  StartRead(&message_);
}

absl::Status RequestCall::EnterReading() {
  // What would be refused later need not be read.
  MILLRACE_RETURN_IF_ERROR(kind_.running.CheckRoom());
  MILLRACE_RETURN_IF_ERROR(kind_.reading.Enter(context_, deadline_));
  kind_.reading.AwaitClient(context_,
                            SteadyNow() + core_.options.request_timeout);
  return absl::OkStatus();
}

void RequestCall::OnReadDone(bool ok) {
  kind_.reading.Leave(context_);
  if (!ok) {
    return End(
        context_->IsCancelled()
            ? absl::CancelledError("the client gave up before its request came")
            : absl::InvalidArgumentError(
                  "the call has no request\nsend one message"));
  }
  const absl::Status status = kind_.running.Enter(context_, deadline_);
  entered_ = status.ok();
  if (!entered_) return End(status);
  OnRequest();
}

absl::StatusOr<Admission::Reservation> RequestCall::ReserveRequest(
    Admission& admission, const ::google::protobuf::Descriptor& type) const {
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t bytes,
                            RequestMemory(message_, type));
  return admission.Reserve(/*job=*/0, bytes);
}

void RequestCall::AwaitClient() {
  kind_.running.AwaitClient(context_,
                            SteadyNow() + core_.options.client_timeout);
}

void RequestCall::ClientMoved() { kind_.running.ClientMoved(context_); }

void RequestCall::Leave() {
  // Whoever ended the call while it was read may still be within it.
  kind_.reading.Leave(context_);
  if (entered_) kind_.running.Leave(context_);
}

}  // namespace millrace
