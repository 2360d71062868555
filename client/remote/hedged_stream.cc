// SPDX-License-Identifier: Apache-2.0
#include "client/remote/hedged_stream.h"

#include <utility>

#include "client/remote/frame_stream.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/hedged_call.h"

namespace millrace {
namespace {

using Events = HedgedCallOptions::Events;

std::shared_ptr<Call> StartLeg(const HedgedStreamOptions& options,
                               SteadyTime deadline,
                               std::shared_ptr<FleetMember> member,
                               Events events) {
  return StartFrameStream(
      {.method = options.method,
       .request = options.request,
       .member = std::move(member),
       .deadline = deadline,
       .on_frame = [&options, on_sign = std::move(events.on_sign)](
                       const ReceivedFrame& frame) -> absl::Status {
         MILLRACE_RETURN_IF_ERROR(on_sign());
         return options.on_frame(frame);
       },
       .done = std::move(events.done)});
}

absl::Status EndOfLeg(const HedgedStreamOptions& options,
                      const FleetMember& member, SteadyTime start,
                      absl::Status status) {
  if (status.ok()) {
    status = options.check_whole();
    if (!status.ok()) status = ProtocolError(member, status);
  }
  return NoteFailure(options.context, member, options.partition, start, status);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Call>> StartHedgedStream(
    HedgedStreamOptions given) {
  MILLRACE_ASSIGN_OR_RETURN(
      std::shared_ptr<FleetMember> member,
      given.context.refusals.Pick(given.context.fleet, given.partition));
  // Shared by the callbacks below.
  const auto options = std::make_shared<HedgedStreamOptions>(std::move(given));
  const CallTimes times = TimesOf(options->context, options->partition);
  return StartHedgedCall(
      std::move(member),
      {.fleet = options->context.fleet,
       .hedging = options->context.hedging,
       .kind = options->kind,
       .partition = options->partition,
       .deadline = times.deadline,
       .patience = times.patience,
       .start =
           [options, deadline = times.deadline](
               std::shared_ptr<FleetMember> replica, Events events) {
             return StartLeg(*options, deadline, std::move(replica),
                             std::move(events));
           },
       .on_end =
           [options](const FleetMember& replica, SteadyTime start,
                     absl::Status status) {
             return EndOfLeg(*options, replica, start, std::move(status));
           },
       .done =
           [options](absl::Status status, const std::shared_ptr<FleetMember>&) {
             options->done(std::move(status));
           }});
}

}  // namespace millrace
