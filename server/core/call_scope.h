// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "server/core/call_trace.h"
#include "server/core/core.h"

namespace millrace {

// CANCELLED: the client no longer waits for the call. A call is also cancelled
// soon after its deadline.
absl::Status CheckNotCancelled(const ::grpc::CallbackServerContext& call);

// The Sample call on whose behalf other servers are called. All references must
// outlive it.
struct CallScope {
  // CANCELLED: the client gave up. DEADLINE_EXCEEDED: the call's deadline
  // passed.
  absl::Status CheckNotCancelled() const;
  // Context for a call to a peer; the client's cancellation and deadline
  // propagate to it.
  std::unique_ptr<::grpc::ClientContext> PeerContext() const;

  ServerCore& core;
  ::grpc::CallbackServerContext& call;
  const SteadyTime deadline;
  const std::string& request_id;  // calls to peers get it too
  CallTrace* trace = nullptr;     // null without --trace-slow
};

}  // namespace millrace
