// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/remote/call_context.h"
#include "common/graph/schema.h"
#include "common/grpc/call/call.h"

namespace millrace {

// Original ids of one lookup range, and where to write the nodes' ids.
struct ResolveRequest {
  TypeIndex type = 0;
  int partition = 0;
  std::vector<int64_t> original_ids;
  std::vector<size_t> positions;  // target[positions[i]] = id i
  uint64_t* target = nullptr;     // must outlive the call
};

// Splits original ids by the partition whose lookup table holds them, into
// requests of at most kMaxIdsPerCall.
// INVALID_ARGUMENT: an id is out of range (names position and value).
absl::StatusOr<std::vector<ResolveRequest>> SplitByLookup(
    const Manifest& manifest, TypeIndex type,
    std::span<const int64_t> original_ids, uint64_t* target);

// Like StartRowCall(), for the RPC Resolve.
absl::StatusOr<std::shared_ptr<Call>> StartResolveCall(
    const CallContext& context, ResolveRequest request, CallDone done);

}  // namespace millrace
