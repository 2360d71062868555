// SPDX-License-Identifier: Apache-2.0
// How much memory calls take. A call reserves it (admission.h) before it
// allocates. All numbers are upper bounds, in bytes per whatever the name says.
#pragma once

#include <cstdint>

namespace millrace {

// ---- Requests (server/rpc/parse_request.cc) ----

// For each byte of a request: up to two copies of the message, and its ids as
// 64-bit integers. The ids of a Resolve request have 64 bits anyway; its reply
// takes that share.
inline constexpr uint64_t kBytesPerRequestByte = 4;
// For a field besides its bytes: an unknown field takes a string and an entry
// in a vector that grew by doubling.
inline constexpr uint64_t kBytesPerRequestField = 128;
// For a message and its entry in a list, and for a frontier also its answer.
inline constexpr uint64_t kBytesPerRequestMessage = 384;
// For each byte of packed numbers: one may take a byte in the request but 8 in
// memory, in an array that grew by doubling.
inline constexpr uint64_t kBytesPerPackedByte = 24;

// ---- Sample (server/rpc/sample_rpc.cc) ----

// For a seed or a negative, besides the batch.
inline constexpr uint64_t kBytesPerSeed = 160;
// For each byte of a batch: its arrays come from vectors that grew by doubling.
inline constexpr uint64_t kBytesPerBatchByte = 2;
// For a node and an edge of a batch, in the lists of rows that the stream has
// (SentRows): a node is in three of them, an edge with features in one.
inline constexpr uint64_t kSentRowsBytesPerNode = 3 * sizeof(uint32_t);
inline constexpr uint64_t kSentRowsBytesPerEdge = sizeof(uint32_t);

// ---- Hops (hop_budget.h) ----

// For a node of a frontier, which is grouped by owner.
inline constexpr uint64_t kBytesPerFrontierNode = 24;
// For a pick at the peak of a hop: the pick itself, its place among the edges
// and, if it is a new node, its share of the node table.
inline constexpr uint64_t kBytesPerPick = 48;
// For a pick besides, where batches have edge ids or edge features.
inline constexpr uint64_t kBytesPerEdgeId = 16;
inline constexpr uint64_t kBytesPerFeatureRow = 16;

// ---- Expand (server/rpc/expand_request.cc, expand_handler.cc) ----

// For each byte of a reply: strings that grew by doubling, plus the bytes being
// sent or, before that, the last picks with 64-bit ids.
inline constexpr uint64_t kBytesPerReplyByte = 3;
// For each byte of the ids of a frontier's sets: hash tables of 64-bit ids that
// are less than half full, and tables of lists with one entry each.
inline constexpr uint64_t kBytesPerAmongByte = 6;
inline constexpr uint64_t kBytesPerExcludedByte = 48;

}  // namespace millrace
