// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/graph/store.h"
#include "common/sample/excluded_edges.h"
#include "common/sample/neighbor_source.h"
#include "server/core/core.h"

namespace millrace {

namespace v1 {
class ExpandRequest;
class ExpandRequest_Frontier;
}  // namespace v1

// A frontier of an Expand request, checked and ready to be drawn for.
struct OwnedNodes {
  RelationIndex relation = 0;
  int32_t fanout = 0;
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;
  std::vector<int64_t> times;
  NodeSet among;
  ExcludedEdges excluded;
  DType neighbor_dtype = DType::kNone;  // type of the neighbours' ids

  // The part of the frontier that starts at `begin` and has `count` nodes. A
  // view.
  Frontier Part(size_t begin, size_t count) const;
};

// Checks all of a request but its frontiers. Blocks like
// ServedStore::LookForSplits().
// INVALID_ARGUMENT, FAILED_PRECONDITION: as docs/protocol.md says.
absl::Status CheckExpandRequest(ServerCore& core,
                                const v1::ExpandRequest& request);

// Memory that the sets of a frontier will take.
uint64_t SetBytes(const v1::ExpandRequest_Frontier& frontier);

// Reads and checks a frontier of a request that CheckExpandRequest() accepted.
// INVALID_ARGUMENT: a number out of range, or arrays whose lengths do not fit
// each other. FAILED_PRECONDITION: the store does not have the lists.
absl::StatusOr<OwnedNodes> ReadFrontier(
    const Store& store, const v1::ExpandRequest& request,
    const v1::ExpandRequest_Frontier& frontier);

}  // namespace millrace
