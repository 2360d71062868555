// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/seeds/edge_directory.h"
#include "server/core/call_scope.h"

namespace millrace {

// Looks up nodes and edges of all partitions for one Sample call: reads the
// partitions mapped here, and calls the owners of the others, all concurrently.
// A call that fails on one replica is retried on the others.
// Not thread-safe. `scope` must outlive it.
class PeerEdgeDirectory final : public EdgeDirectory {
 public:
  explicit PeerEdgeDirectory(const CallScope& scope) : scope_(scope) {}

  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override;
  absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) override;

 private:
  const CallScope& scope_;
};

}  // namespace millrace
