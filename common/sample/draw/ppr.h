// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/sample/draw/topology_builder.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Adds one hop of SampleMethod::kPpr: the nodes that random walks from each
// frontier node visit most, as PinSAGE chooses neighbours (Ying et al. 2018).
// The visits estimate personalised PageRank (Avrachenkov et al. 2007).
// OUT_OF_RANGE: 2^32 walkers or more. Also the errors of `source` and
// `builder`.
absl::Status AddPprHop(int hop, DrawContext context, TopologyBuilder& builder,
                       NeighborSource& source);

}  // namespace millrace
