// SPDX-License-Identifier: Apache-2.0
// Where a server draws neighbours from the partitions that it has: on the CPU
// or on a device.
#pragma once

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/hop_counts.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Threads: any.
class NeighborDrawer {
 public:
  virtual ~NeighborDrawer() = default;

  // Does what DrawNeighbors() (draw/draw.h) does, bit for bit. `store` is the
  // one that the drawer was made for, perhaps with more splits.
  virtual absl::Status Draw(const Store& store, int part,
                            const DrawContext& context,
                            const Frontier& frontier, Picks& picks) = 0;

  // A hop counts once for each call.
  virtual HopCounts counts() const = 0;
};

}  // namespace millrace
