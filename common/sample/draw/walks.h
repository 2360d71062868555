// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/sample/batch.h"
#include "common/sample/draw/topology_builder.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// Makes the batch of SampleMethod::kWalk: random walks from the builder's
// seeds.
// OUT_OF_RANGE: more than 2^31 - 1 walkers. Also the errors of `source` and
// `builder`.
absl::StatusOr<Batch> SampleWalks(DrawContext context, TopologyBuilder& builder,
                                  NeighborSource& source);

}  // namespace millrace
