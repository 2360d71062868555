// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "common/grpc/tls/tls_files.h"

namespace millrace {

// Checks the health of this server through its port, as a client would. Keeps
// one connection, made at the first check.
// Threads: any.
class PortCheck {
 public:
  // `address` reaches the port from this host. `tls` holds the server's files;
  // null without TLS.
  PortCheck(const std::string& address, const std::shared_ptr<TlsFiles>& tls);

  // OK if the server answers at all, whatever the answer. UNAVAILABLE
  // otherwise, or DEADLINE_EXCEEDED after `timeout`.
  absl::Status Ask(absl::Duration timeout) const;

 private:
  // CANCELLED: `deadline` passed first.
  absl::Status AskUntil(SteadyTime deadline) const;

  // Shared with gRPC's calls.
  const std::shared_ptr<::grpc::Channel> channel_;
};

}  // namespace millrace
