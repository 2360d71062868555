// SPDX-License-Identifier: Apache-2.0
#include "client/remote/traced_call.h"

namespace millrace {

TracedCall::TracedCall(const CallContext& context, const char* method,
                       int partition)
    : context_(context),
      method_(method),
      partition_(partition),
      start_(context.trace == nullptr ? SteadyTime() : context.timer.Now()) {}

void TracedCall::NoteEnd(const FleetMember* replica) {
  if (context_.trace == nullptr || replica == nullptr) return;
  context_.trace->NoteCall({.method = method_,
                            .server = replica->address,
                            .partition = partition_,
                            .replicas_asked = sent_,
                            .time = context_.timer.Now() - start_});
}

}  // namespace millrace
