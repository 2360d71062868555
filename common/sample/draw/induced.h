// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/sample/draw/topology_builder.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Replaces the edges of the builder by all edges of the graph that join its
// nodes (SampleMethod::kInduced). `context` is that of the hops.
// OUT_OF_RANGE: too many edges. Also the errors of `source`.
absl::Status InduceEdges(DrawContext context, TopologyBuilder& builder,
                         NeighborSource& source);

}  // namespace millrace
