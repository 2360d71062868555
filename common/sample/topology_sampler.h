// SPDX-License-Identifier: Apache-2.0
// Where the topology of a batch is made: on the CPU or on a device.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Which batch to make, and what its topology contains besides the nodes.
struct TopologyRequest {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  bool edge_ids = false;      // fill EdgeBlock::edge_id
  bool feature_rows = false;  // fill EdgeBlock::feature_row
};

// Makes the topology of batches of one store, all of whose partitions are in
// this process. Thread-safe.
class TopologySampler {
 public:
  virtual ~TopologySampler() = default;

  // Returns what SampleTopology() (draw/sampler.h) returns for the store, bit
  // for bit.
  virtual absl::StatusOr<Batch> Sample(const ResolvedJob& job,
                                       const TopologyRequest& request,
                                       const ResolvedSeeds& seeds) = 0;
};

}  // namespace millrace
