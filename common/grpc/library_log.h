// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

// Makes gRPC's own messages, which it writes only if the user sets
// GRPC_VERBOSITY, events of this program's log. Idempotent; any thread.
void TakeGrpcLog();

}  // namespace millrace
