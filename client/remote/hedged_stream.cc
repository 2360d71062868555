// SPDX-License-Identifier: Apache-2.0
#include "client/remote/hedged_stream.h"

#include <string>
#include <utility>

#include "client/remote/call_failure.h"
#include "client/remote/frame_stream.h"
#include "client/remote/traced_call.h"
#include "common/base/status_macros.h"
#include "common/grpc/call/hedged_call.h"

namespace millrace {
namespace {

class HedgedStream final : public HedgedRequest {
 public:
  HedgedStream(const CallContext& context, StreamRequest request,
               SteadyTime deadline, std::shared_ptr<FrameReceiver> receiver,
               CallDone done)
      : context_(context),
        request_(std::move(request)),
        deadline_(deadline),
        receiver_(std::move(receiver)),
        done_(std::move(done)),
        request_id_(context.request_id),
        traced_(context_, request_.method.c_str(), request_.partition) {}

  std::shared_ptr<Call> Send(std::shared_ptr<FleetMember> replica,
                             std::shared_ptr<CallObserver> observer) override {
    traced_.NoteSent();
    return StartFrameStream({.method = request_.method,
                             .request = request_.message,
                             .member = std::move(replica),
                             .request_id = request_id_,
                             .deadline = deadline_,
                             .receiver = receiver_,
                             .observer = std::move(observer)});
  }

  absl::Status Judge(const FleetMember& replica, SteadyTime start,
                     absl::Status status) override {
    if (status.ok()) {
      status = receiver_->CheckComplete();
      if (!status.ok()) status = ProtocolError(replica, status);
    }
    return NoteEnd(context_, {replica, request_.partition, start}, status);
  }

  void Finish(absl::Status status,
              std::shared_ptr<FleetMember> replica) override {
    traced_.NoteEnd(replica.get());
    done_(std::move(status));
  }

 private:
  const CallContext context_;
  const StreamRequest request_;
  const SteadyTime deadline_;
  const std::shared_ptr<FrameReceiver> receiver_;  // shared with the streams
  const CallDone done_;
  const std::string request_id_;
  TracedCall traced_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Call>> StartHedgedStream(
    const CallContext& context, StreamRequest request,
    std::shared_ptr<FrameReceiver> receiver, CallDone done) {
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<FleetMember> member,
      context.refusals.Pick(context.fleet, request.partition));
  const HedgedCallOptions options =
      HedgedOptions(context, request.kind, request.partition);
  return StartHedgedCall(options, std::move(member),
                         std::make_shared<HedgedStream>(
                             context, std::move(request), options.deadline,
                             std::move(receiver), std::move(done)));
}

}  // namespace millrace
