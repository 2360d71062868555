// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/rpc/reply_call.h"

namespace millrace {

// The RPCs with a single reply: Expand, HasEdges and Resolve, which are
// answered on the leaf pool, and Describe, which does not wait for them.
std::vector<ReplyRpc> ReplyRpcs(ServerCore& core);

}  // namespace millrace
