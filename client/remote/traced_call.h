// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "client/remote/call_context.h"
#include "common/base/steady_time.h"
#include "common/grpc/fleet/fleet.h"

namespace millrace {

// Measures one call for the trace of its fetch, from its construction to
// NoteEnd(). Does nothing if the fetch has no trace.
// Threads: any may call NoteSent(); NoteEnd() comes after that.
class TracedCall {
 public:
  // `context` and `method`, such as "/millrace.v1.Sampler/Sample", must outlive
  // this.
  TracedCall(const CallContext& context, const char* method, int partition);

  // The request was sent to one more replica.
  void NoteSent() { ++sent_; }
  // `replica` is the one whose answer counts; null if there is none.
  void NoteEnd(const FleetMember* replica);

 private:
  const CallContext& context_;
  const char* const method_;
  const int partition_;
  const SteadyTime start_;
  std::atomic<int> sent_ = 0;
};

}  // namespace millrace
