// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Draws from the lists of whichever partition owns a node. All partitions must
// be mapped here.
// RESOURCE_EXHAUSTED: a hop or the walks would not fit into the memory of this
// machine. Also the errors of DrawNeighbors().
// Not thread-safe. The store must outlive it.
class MappedNeighborSource final : public NeighborSource {
 public:
  explicit MappedNeighborSource(const Store& store) : store_(store) {}

  absl::Status Expand(const DrawContext& context,
                      std::span<const Frontier> frontiers,
                      std::span<Picks> picks) override;
  absl::Status Reserve(uint64_t bytes) override;

 private:
  absl::Status CheckHop(const DrawContext& context,
                        const Frontier& frontier) const;
  uint64_t CountPicks(const DrawContext& context,
                      const Frontier& frontier) const;
  absl::Status ExpandOne(const DrawContext& context, const Frontier& frontier,
                         Picks& picks) const;

  const Store& store_;
};

}  // namespace millrace
