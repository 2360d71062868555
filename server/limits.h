// SPDX-License-Identifier: Apache-2.0
// What one request may ask for; docs/protocol.md lists the limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/wire/limits.h"  // kMaxSeeds

namespace millrace {

inline constexpr int32_t kMaxFanout = 1 << 20;  // -1 (all) apart

// Picks of one ExpandReply, in bytes; what is beyond is asked for again.
inline constexpr size_t kMaxExpandReplyBytes = 8 << 20;

// Largest message from another server: one node's list may be longer than
// kMaxExpandReplyBytes.
inline constexpr int kMaxPeerMessageBytes = 1 << 30;

}  // namespace millrace
