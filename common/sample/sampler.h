// SPDX-License-Identifier: Apache-2.0
// Multi-hop neighbour sampling: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// The seeds of one batch, in order; the two spans have equal length.
struct BatchSeeds {
  std::span<const uint64_t> ids;
  std::span<const int64_t> original_ids;
};

// Builds the topology of a batch: NodeBlock::{hop_offsets, id, tree},
// EdgeBlock::{indptr, neighbor, edge_id}, seed and seed_to_local. Columns
// are gathered afterwards (gather.h). `edge_ids`: fill EdgeBlock::edge_id.
// Errors: those of NeighborSource; OUT_OF_RANGE: more than 2^31 - 1 nodes of
// a type or edges of a relation in one batch (tensors index with int32).
// The method is GraphSAGE's (Hamilton et al. 2017) with each node expanded
// once per batch; see docs/determinism.md section 5.
absl::StatusOr<Batch> SampleTopology(const ResolvedJob& job,
                                     const Manifest& manifest, uint32_t epoch,
                                     uint32_t batch, const BatchSeeds& seeds,
                                     bool edge_ids, NeighborSource& source);

}  // namespace millrace
