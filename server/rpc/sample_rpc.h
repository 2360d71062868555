// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/rpc/stream_call.h"

namespace millrace {

// The RPC Sample: checks the request, runs the hops (on the sampling pool), and
// streams the batch (from the leaf pool).
StreamRpc SampleRpc(ServerCore& core);

}  // namespace millrace
