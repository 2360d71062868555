// SPDX-License-Identifier: Apache-2.0
// Log lines about clients that the servers in this process refuse.
#pragma once

#include "absl/status/status.h"

namespace millrace {

// Logs that a client is refused, and the first line of `why`. Logs at most once
// a second, and the same line once a minute: refused clients try again every
// second, and there may be many.
void WarnOfRefusedClient(const absl::Status& why);

// From now on, also logs the clients whose certificates OpenSSL refuses. Must
// be called before gRPC makes a server.
void WatchRefusals();

}  // namespace millrace
