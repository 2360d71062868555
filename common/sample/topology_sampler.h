// SPDX-License-Identifier: Apache-2.0
// Where the topology of a batch is made: on the CPU or on a device.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/batch.h"
#include "common/sample/hop_counts.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Which batch to make, and what its topology contains besides the nodes.
struct TopologyRequest {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  bool edge_ids = false;      // fill EdgeBlock::edge_id
  bool feature_rows = false;  // fill EdgeBlock::feature_row
  // Called with the size of memory that the batch takes, before a device fills
  // it; the batch fails as this does. May be null.
  std::function<absl::Status(uint64_t)> reserve = {};
};

// Makes the topology of batches of one graph, all of whose partitions are in
// this process. Threads: any.
class TopologySampler {
 public:
  virtual ~TopologySampler() = default;

  // Returns what SampleTopology() (draw/sampler.h) returns for `store`, bit for
  // bit: the store that the sampler was made for, perhaps with more splits.
  virtual absl::StatusOr<Batch> Sample(const Store& store,
                                       const ResolvedJob& job,
                                       const TopologyRequest& request,
                                       const ResolvedSeeds& seeds) = 0;

  // All hops of a batch count for where the batch was made.
  virtual HopCounts counts() const = 0;
};

}  // namespace millrace
