// SPDX-License-Identifier: Apache-2.0
// What one request may ask for; docs/protocol.md lists the limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/wire/limits.h"  // kMaxSeeds

namespace millrace {

// Picks of one ExpandReply, in bytes; what is beyond is asked for again.
inline constexpr size_t kMaxExpandReplyBytes = 8 << 20;

// Largest message from another server: one node's list may be longer than
// kMaxExpandReplyBytes.
inline constexpr int kMaxPeerMessageBytes = 1 << 30;

// Fields of a request, those of its messages among them.
inline constexpr uint64_t kMaxRequestFields = 1 << 20;

// The request of Describe: it has no fields, but may get some.
inline constexpr size_t kMaxDescribeBytes = 1 << 10;

// Calls of one connection at a time: far fewer than calls of any kind, so that
// no connection takes the place of others. A client of ours lets more wait.
inline constexpr int kMaxCallsPerConnection = 256;
// The same with those that have ended for the client, by their last message or
// because it gave them up, and not yet for the server. More are refused: a
// client that keeps to the limit above has fewer.
inline constexpr int kMaxLiveCallsPerConnection = 2 * kMaxCallsPerConnection;

}  // namespace millrace
