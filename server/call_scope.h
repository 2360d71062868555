// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <memory>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "server/core.h"

namespace millrace {

// CANCELLED: nobody waits for the call any more. It is cancelled, too, soon
// after its deadline.
absl::Status CheckWanted(const ::grpc::CallbackServerContext& call);

// The Sample call for which other servers are asked. All references must
// outlive it.
struct CallScope {
  // CANCELLED: the client gave up. DEADLINE_EXCEEDED: of the call.
  absl::Status CheckLive() const;
  // For a call to a peer, which the client's cancellation and deadline reach.
  std::unique_ptr<::grpc::ClientContext> PeerContext() const;

  ServerCore& core;
  ::grpc::CallbackServerContext& call;
  const SteadyTime deadline;
};

}  // namespace millrace
