// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/sample/batch.h"
#include "common/sample/draw/topology_builder.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// The batch of SampleMethod::kWalk around the builder's seeds.
absl::StatusOr<Batch> SampleWalks(DrawContext context, TopologyBuilder& builder,
                                  NeighborSource& source);

}  // namespace millrace
