// SPDX-License-Identifier: Apache-2.0
// Multi-hop sampling: a pure function of its arguments.
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Checks what a topology is asked for. INVALID_ARGUMENT: a temporal job whose
// seeds have no times, or edge features with SampleMethod::kPpr, whose edges
// are not those of the graph.
absl::Status CheckTopologyInput(const ResolvedJob& job,
                                const TopologyRequest& request,
                                const ResolvedSeeds& seeds);

// Builds the topology of a batch: NodeBlock::{hop_offsets, id, tree}, EdgeBlock
// except its features, everything about the seeds, and walks. Columns are
// gathered afterwards (gather.h).
// The hops are those of GraphSAGE (Hamilton et al. 2017), with each node
// expanded once per batch; docs/determinism.md, section 5, specifies these and
// the other methods.
// OUT_OF_RANGE: more than 2^31 - 1 nodes of a type or edges of a relation in
// one batch (tensors index with int32), or too many walkers. Also the errors of
// CheckTopologyInput() and NeighborSource.
absl::StatusOr<Batch> SampleTopology(const ResolvedJob& job,
                                     const Manifest& manifest,
                                     const TopologyRequest& request,
                                     const ResolvedSeeds& seeds,
                                     NeighborSource& source);

}  // namespace millrace
