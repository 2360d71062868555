// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_topology_sampler.h"

#include "common/sample/draw/sampler.h"
#include "common/sample/local/mapped_neighbor_source.h"

namespace millrace {

absl::StatusOr<Batch> MappedTopologySampler::Sample(
    const Store& store, const ResolvedJob& job, const TopologyRequest& request,
    const ResolvedSeeds& seeds) {
  hops_.AddHost(job.hops);
  MappedNeighborSource source(store);
  return SampleTopology(job, store.manifest(), request, seeds, source);
}

}  // namespace millrace
