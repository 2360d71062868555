// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/mapped_neighbor_drawer.h"

#include "common/sample/draw/draw.h"

namespace millrace {

absl::Status MappedNeighborDrawer::Draw(const Store& store, int part,
                                        const DrawContext& context,
                                        const Frontier& frontier,
                                        Picks& picks) {
  hops_.AddHost(1);
  return DrawNeighbors(store, part, context, frontier, picks);
}

}  // namespace millrace
