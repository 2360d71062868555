// SPDX-License-Identifier: Apache-2.0
// What one request may ask for; docs/protocol.md lists the limits.
#pragma once

#include <cstddef>

#include "common/wire/limits.h"  // kMaxSeeds

namespace millrace {

// Picks of one ExpandReply, in bytes; what is beyond is asked for again.
inline constexpr size_t kMaxExpandReplyBytes = 8 << 20;

// Largest message from another server: one node's list may be longer than
// kMaxExpandReplyBytes.
inline constexpr int kMaxPeerMessageBytes = 1 << 30;

}  // namespace millrace
