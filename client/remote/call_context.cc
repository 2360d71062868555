// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_context.h"

#include <string>

#include "common/base/steady_time.h"
#include "common/base/strings.h"

namespace millrace {

const std::string& NoRequestId() {
  static const std::string& none = *new std::string;
  return none;
}

HedgedCallOptions HedgedOptions(const CallContext& context, Hedging::Kind kind,
                                int partition) {
  const SteadyTime now = context.timer.Now();
  return {.replicas = context.fleet,
          .hedging = context.hedging,
          .timer = context.timer,
          .kind = kind,
          .partition = partition,
          .deadline = now + context.retry.TimeoutOf(context.timeout, now),
          .max_silence = context.retry.MaxSilenceOf(partition, now)};
}

void NoteFrame(const CallContext& context, int partition,
               const ReceivedFrame& frame) {
  context.retry.NoteAnswer(partition, context.timer.Now());
  context.received += frame.payload_bytes();
}

absl::Status ProtocolError(const FleetMember& member,
                           const absl::Status& status) {
  return absl::InternalError(StrCat(
      "server ", member.address, " breaks the protocol: ",
      std::string(status.message()), "\nrun the same version everywhere"));
}

}  // namespace millrace
