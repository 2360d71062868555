// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_call.h"

#include <utility>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/hedged_call.h"
#include "common/grpc/call/unary_call.h"

namespace millrace {

// Filled by the call's callback; not read before `done`.
struct PeerCall::Attempt {
  std::shared_ptr<Call> call;  // shared with gRPC's callbacks
  ::grpc::ByteBuffer reply;
  absl::Status status;
  std::shared_ptr<FleetMember> member;  // answered; shared with the fleet
  Notification done;
};

PeerCall::PeerCall(const CallScope& scope, int partition, Hedging::Kind kind,
                   std::string method)
    : scope_(scope),
      partition_(partition),
      kind_(kind),
      method_(std::move(method)),
      picker_(scope, partition) {}

PeerCall::~PeerCall() {
  if (attempt_ == nullptr) return;
  attempt_->call->Cancel();
  attempt_->done.WaitForNotification();
}

absl::Status PeerCall::Start(const ::google::protobuf::MessageLite& request) {
  request_ = SerializeMessage(request);
  return Send();
}

absl::Status PeerCall::Send() {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<FleetMember> member,
                            picker_.Pick());
  attempt_ = std::make_unique<Attempt>();
  Attempt* const attempt = attempt_.get();
  auto start = [this, attempt](std::shared_ptr<FleetMember> replica,
                               HedgedCallOptions::Events events) {
    return StartUnaryCall(
        {.method = method_,
         .request = request_,
         .member = std::move(replica),
         .context = scope_.PeerContext(),
         .on_reply = [attempt, on_sign = std::move(events.on_sign)](
                         ::grpc::ByteBuffer& bytes) -> absl::Status {
           MILLRACE_RETURN_IF_ERROR(on_sign());
           attempt->reply.Swap(&bytes);
           return absl::OkStatus();
         },
         .done = std::move(events.done)});
  };
  attempt->call = StartHedgedCall(
      std::move(member),
      {.fleet = *scope_.core.fleet,
       .hedging = scope_.core.peer_hedging,
       .kind = kind_,
       .partition = partition_,
       .deadline = scope_.deadline,
       .start = std::move(start),
       .on_end =
           [this](const FleetMember& replica, SteadyTime, absl::Status status) {
             return picker_.Report(replica, std::move(status));
           },
       .done =
           [attempt](absl::Status status, std::shared_ptr<FleetMember> who) {
             attempt->status = std::move(status);
             attempt->member = std::move(who);
             attempt->done.Notify();
           }});
  return absl::OkStatus();
}

absl::Status PeerCall::Finish(::google::protobuf::MessageLite& reply) {
  while (true) {
    attempt_->done.WaitForNotification();
    const std::unique_ptr<Attempt> attempt = std::move(attempt_);
    picker_.NoteSpeaker(attempt->member);
    if (attempt->status.ok()) {
      picker_.NoteSuccess();
      const absl::Status parsed = ParseMessage(attempt->reply, reply);
      return parsed.ok() ? parsed : Named(parsed);
    }
    MILLRACE_RETURN_IF_ERROR(picker_.AfterFailure(attempt->status));
    MILLRACE_RETURN_IF_ERROR(Send());
  }
}

absl::Status PeerCall::Named(const absl::Status& status) const {
  return picker_.Named(status);
}

}  // namespace millrace
