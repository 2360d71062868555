// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_call.h"

#include <utility>

#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/call/hedged_call.h"
#include "common/grpc/call/unary_call.h"
#include "common/wire/error_info.h"

namespace millrace {

// One attempt to send the request, and its outcome, which must not be read
// before the attempt has ended. The PeerCall outlives it.
class PeerCall::Attempt final : public HedgedRequest {
 public:
  explicit Attempt(PeerCall& call) : call_(call) {}

  std::shared_ptr<Call> Send(std::shared_ptr<FleetMember> replica,
                             std::shared_ptr<CallObserver> observer) override {
    return StartUnaryCall({.method = call_.method_,
                           .request = call_.request_,
                           .member = std::move(replica),
                           .context = call_.scope_.PeerContext(),
                           .on_reply =
                               [this](::grpc::ByteBuffer& bytes) {
                                 reply_.Swap(&bytes);
                                 return absl::OkStatus();
                               },
                           .observer = std::move(observer)});
  }

  absl::Status Judge(const FleetMember& replica, SteadyTime,
                     absl::Status status) override {
    return call_.picker_.Report(replica, status);
  }

  void Finish(absl::Status status,
              std::shared_ptr<FleetMember> replica) override {
    // A call that was cancelled says nothing about the other server.
    if (!absl::IsCancelled(status)) {
      call_.scope_.core.metrics.ObservePeerCall(call_.rpc_,
                                                SteadyNow() - start_);
    }
    status_ = std::move(status);
    replica_ = std::move(replica);
    end_.Notify();
  }

  void AwaitEnd() const { end_.WaitForNotification(); }
  const absl::Status& status() const { return status_; }
  ::grpc::ByteBuffer& reply() { return reply_; }
  // The replica that the outcome came from; shared with the fleet.
  const std::shared_ptr<FleetMember>& replica() const { return replica_; }

 private:
  PeerCall& call_;
  const SteadyTime start_ = SteadyNow();
  ::grpc::ByteBuffer reply_;
  absl::Status status_;
  std::shared_ptr<FleetMember> replica_;  // shared with the fleet
  Notification end_;
};

PeerCall::PeerCall(const CallScope& scope, int partition, Hedging::Kind kind,
                   std::string method)
    : scope_(scope),
      partition_(partition),
      kind_(kind),
      method_(std::move(method)),
      rpc_(method_.substr(method_.rfind('/') + 1)),
      picker_(scope, partition) {}

PeerCall::~PeerCall() {
  if (attempt_ == nullptr) return;
  in_flight_->Cancel();
  attempt_->AwaitEnd();
}

absl::Status PeerCall::Start(const ::google::protobuf::MessageLite& request) {
  request_ = SerializeMessage(request);
  return Send();
}

absl::Status PeerCall::Send() {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<FleetMember> member,
                            picker_.Pick());
  attempt_ = std::make_shared<Attempt>(*this);
  in_flight_ = StartHedgedCall({.replicas = *scope_.core.fleet,
                                .hedging = scope_.core.peer_hedging,
                                .timer = scope_.core.peer_timer,
                                .kind = kind_,
                                .partition = partition_,
                                .deadline = scope_.deadline},
                               std::move(member), attempt_);
  return absl::OkStatus();
}

absl::Status PeerCall::Finish(::google::protobuf::MessageLite& reply) {
  while (true) {
    attempt_->AwaitEnd();
    const std::shared_ptr<Attempt> attempt = std::move(attempt_);
    in_flight_ = nullptr;
    answered_by_ = attempt->replica();
    const absl::Status& status = attempt->status();
    if (status.ok()) {
      picker_.NoteSuccess();
      const absl::Status parsed = ParseMessage(attempt->reply(), reply);
      return parsed.ok() ? parsed : Named(parsed);
    }
    if (!picker_.MaySendAgain(*answered_by_, status)) return Named(status);
    MILLRACE_RETURN_IF_ERROR(Send());
  }
}

std::string PeerCall::answered_by() const {
  return answered_by_ == nullptr ? "" : answered_by_->address;
}

absl::Status PeerCall::Named(const absl::Status& status) const {
  ErrorInfo info = ErrorInfoOf(status);
  info.partition = partition_;
  info.moved = false;  // this call asks no other server
  return WithErrorInfo(
      Reworded(status, StrCat("partition ", partition_, ", server ",
                              answered_by_->address, ": ",
                              std::string(status.message()))),
      info);
}

}  // namespace millrace
