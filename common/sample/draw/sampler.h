// SPDX-License-Identifier: Apache-2.0
// Multi-hop sampling: a pure function of its arguments.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Which batch, and what its topology carries.
struct BatchName {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  bool edge_ids = false;      // fill EdgeBlock::edge_id
  bool feature_rows = false;  // fill EdgeBlock::feature_row
};

// Builds the topology of a batch: NodeBlock::{hop_offsets, id, tree},
// EdgeBlock but its features, all of the seeds, and walks.
// Columns are gathered afterwards (gather.h).
// Errors: those of NeighborSource; OUT_OF_RANGE: more than 2^31 - 1 nodes of
// a type or edges of a relation in one batch (tensors index with int32), or
// 2^32 walkers. INVALID_ARGUMENT: a temporal job without times of its seeds,
// features of edges that are none (--method ppr).
// The hops are GraphSAGE's (Hamilton et al. 2017) with each node expanded
// once per batch; see docs/determinism.md section 5, also for the other
// methods.
absl::StatusOr<Batch> SampleTopology(const ResolvedJob& job,
                                     const Manifest& manifest,
                                     const BatchName& name,
                                     const ResolvedSeeds& seeds,
                                     NeighborSource& source);

}  // namespace millrace
