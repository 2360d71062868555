// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/rpc/stream_call.h"

namespace millrace {

// The RPC Gather, run entirely on the leaf pool.
StreamRpc GatherRpc(ServerCore& core);

}  // namespace millrace
