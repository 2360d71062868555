// SPDX-License-Identifier: Apache-2.0
// Limits of a single request; docs/protocol.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/wire/limits.h"  // kMaxSeeds

namespace millrace {

// Byte limit for picks in one ExpandReply; the caller asks again for the rest.
inline constexpr size_t kMaxExpandReplyBytes = 8 << 20;

// Largest message accepted from another server. It exceeds kMaxExpandReplyBytes
// because a reply always holds whole lists, however long.
inline constexpr int kMaxPeerMessageBytes = 1 << 30;

// Largest number of fields in a request, including its submessages.
inline constexpr uint64_t kMaxRequestFields = 1 << 20;

// Largest Describe request. It has one small field; more may be added.
inline constexpr size_t kMaxDescribeBytes = 1 << 10;

// Concurrent calls of one connection: far fewer than the limit for any kind of
// call, so that no connection can take the places of all others. Our own client
// queues further calls.
inline constexpr int kMaxCallsPerConnection = 256;
// The same, but counting calls that have ended for the client (because it
// received the last message or gave up) and not yet for the server. Further
// calls are refused; a client that keeps to the limit above stays below this
// one.
inline constexpr int kMaxLiveCallsPerConnection = 2 * kMaxCallsPerConnection;

}  // namespace millrace
