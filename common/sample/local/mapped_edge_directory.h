// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {

// Looks up nodes and edges in whichever partition owns them. All partitions
// must be mapped here. Not thread-safe. The store must outlive it.
class MappedEdgeDirectory final : public EdgeDirectory {
 public:
  explicit MappedEdgeDirectory(const Store& store) : store_(store) {}

  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override;
  absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) override;

 private:
  const Store& store_;
};

}  // namespace millrace
