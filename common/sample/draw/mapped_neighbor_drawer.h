// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/hop_counts.h"
#include "common/sample/neighbor_drawer.h"

namespace millrace {

// Draws on the CPU, in the calling thread.
class MappedNeighborDrawer final : public NeighborDrawer {
 public:
  absl::Status Draw(const Store& store, int part, const DrawContext& context,
                    const Frontier& frontier, Picks& picks) override;
  HopCounts counts() const override { return hops_.counts(); }

 private:
  HopCounter hops_;
};

}  // namespace millrace
