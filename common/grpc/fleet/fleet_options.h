// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/grpc/channel_args.h"
#include "common/grpc/tls/tls_files.h"

namespace millrace {

struct FleetOptions {
  // Where the servers are: "host:port,host:port", "@FILE" (an address or a list
  // on each line, '#' starts a comment) or "dns:///name:port".
  std::string list;

  // Members with another fingerprint are refused. If empty, the first member
  // that answers decides.
  std::string fingerprint;

  int max_receive_bytes = kMaxMessageBytes;
  int connections = 2;  // per member
  absl::Duration describe_timeout = absl::Seconds(5);
  absl::Duration suspect_timeout = absl::Seconds(1);
  // A member that answered this recently is not suspected. This is no longer
  // than the silence that leads to a suspicion, so that a member that stops
  // right after an answer is found as soon as any other, and a pause stays
  // below 2 s.
  absl::Duration recent_answer = absl::Milliseconds(500);
  absl::Duration file_interval = absl::Seconds(1);
  absl::Duration dns_interval = absl::Seconds(10);
  // How often members that answer are asked again, and how often those that do
  // not.
  absl::Duration ready_interval = absl::Seconds(5);
  absl::Duration retry_interval = absl::Milliseconds(500);

  // Shared with the channels; see OpenClientTls(). Null means plaintext.
  std::shared_ptr<TlsFiles> tls;
};

}  // namespace millrace
