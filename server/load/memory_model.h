// SPDX-License-Identifier: Apache-2.0
// How much memory calls take, which they reserve (admission.h) before they
// allocate. All numbers are upper bounds in bytes.
#pragma once

#include <cstdint>

namespace millrace {

// ---- Requests (server/rpc/parse_request.cc) ----

// There are up to two copies of the message, and its ids as 64-bit integers.
// The ids of a Resolve request have 64 bits anyway; its reply takes that share.
inline constexpr uint64_t kBytesPerRequestByte = 4;
// Besides its bytes, an unknown field takes a string and an entry in a vector
// that grew by doubling.
inline constexpr uint64_t kBytesPerRequestField = 128;
// A submessage takes an entry in a list too, and a frontier also its answer.
inline constexpr uint64_t kBytesPerRequestMessage = 384;
// A packed number may take one byte in the request but 8 in memory, in an array
// that grew by doubling.
inline constexpr uint64_t kBytesPerPackedByte = 24;

// ---- Sample (server/rpc/sample_rpc.cc) ----

// What a seed or a negative takes besides the batch.
inline constexpr uint64_t kBytesPerSeed = 160;
// The arrays of a batch come from vectors that grew by doubling.
inline constexpr uint64_t kBytesPerBatchByte = 2;
// In SentRows, the lists of the rows that a stream has, a node may be three
// times, and an edge with features once.
inline constexpr uint64_t kSentRowsBytesPerNode = 3 * sizeof(uint32_t);
inline constexpr uint64_t kSentRowsBytesPerEdge = sizeof(uint32_t);

// ---- Hops (hop_budget.h) ----

// The nodes of a frontier are grouped by owner.
inline constexpr uint64_t kBytesPerFrontierNode = 24;
// At the peak of a hop there are the pick itself, its place among the edges
// and, if it is a new node, its share of the node table.
inline constexpr uint64_t kBytesPerPick = 48;
// What a pick takes besides, if the batch has edge ids or edge features.
inline constexpr uint64_t kBytesPerEdgeId = 16;
inline constexpr uint64_t kBytesPerFeatureRow = 16;

// ---- Expand (server/rpc/expand_request.cc, expand_handler.cc) ----

// There are strings that grew by doubling, plus the bytes being sent or, before
// that, the last picks with 64-bit ids.
inline constexpr uint64_t kBytesPerReplyByte = 3;
// The ids of `among` become a hash table of 64-bit ids that is less than half
// full, and excluded edges a table of lists with one entry each.
inline constexpr uint64_t kBytesPerAmongByte = 6;
inline constexpr uint64_t kBytesPerExcludedByte = 48;

}  // namespace millrace
