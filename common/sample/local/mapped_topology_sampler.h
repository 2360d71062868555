// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/hop_counts.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Samples on the CPU, in the calling thread.
class MappedTopologySampler final : public TopologySampler {
 public:
  absl::StatusOr<Batch> Sample(const Store& store, const ResolvedJob& job,
                               const TopologyRequest& request,
                               const ResolvedSeeds& seeds) override;
  HopCounts counts() const override { return hops_.counts(); }

 private:
  HopCounter hops_;
};

}  // namespace millrace
