// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Draws neighbours on devices, from the partitions of a graph that are in this
// process. Threads: any.
class NeighborDrawer {
 public:
  virtual ~NeighborDrawer() = default;

  // Does what DrawNeighbors() (draw/draw.h) does, bit for bit, or returns false
  // if the caller must call that. `store` is the one that the drawer was made
  // for, perhaps with more splits. Fails as TopologySampler::Sample() does.
  virtual absl::StatusOr<bool> Draw(const Store& store, int part,
                                    const DrawContext& context,
                                    const Frontier& frontier, Picks& picks) = 0;
};

}  // namespace millrace
