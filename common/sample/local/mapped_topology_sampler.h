// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/topology_sampler.h"

namespace millrace {

// Samples on the CPU, in the calling thread.
class MappedTopologySampler final : public TopologySampler {
 public:
  // All partitions of `store` must be mapped.
  explicit MappedTopologySampler(std::shared_ptr<const Store> store)
      : store_(std::move(store)) {}

  absl::StatusOr<Batch> Sample(const ResolvedJob& job,
                               const TopologyRequest& request,
                               const ResolvedSeeds& seeds) override;

 private:
  const std::shared_ptr<const Store> store_;
};

}  // namespace millrace
