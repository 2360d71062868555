// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_topology_sampler.h"

#include "common/sample/draw/sampler.h"
#include "common/sample/local/mapped_neighbor_source.h"

namespace millrace {

absl::StatusOr<Batch> MappedTopologySampler::Sample(
    const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds) {
  MappedNeighborSource source(*store_);
  return SampleTopology(job, store_->manifest(), request, seeds, source);
}

}  // namespace millrace
