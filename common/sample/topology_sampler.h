// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array_memory.h"
#include "common/graph/store.h"
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
  // Provides the memory of arrays, and names the GPU on which they may stay;
  // null for memory of the process.
  ArrayMemory* memory = nullptr;
};

// Makes the topology of batches on devices, from a graph all of whose
// partitions are in this process. Threads: any.
class TopologySampler {
 public:
  // Called with the size of the memory that a batch takes, before it is
  // allocated; the batch fails as this does.
  using Reserve = std::function<absl::Status(uint64_t bytes)>;

  virtual ~TopologySampler() = default;

  // Returns what SampleTopology() (draw/sampler.h) returns for `store`, bit for
  // bit, or nullopt if the caller must call that. `store` is the one that the
  // sampler was made for, perhaps with more splits; `reserve` may be null.
  // FAILED_PRECONDITION: the CPU would have to make the batch, but must not; or
  // the batch does not fit into the memory of a device. RESOURCE_EXHAUSTED: too
  // little pinned memory now. UNAVAILABLE: a device has failed.
  virtual absl::StatusOr<std::optional<Batch>> Sample(
      const Store& store, const ResolvedJob& job,
      const TopologyRequest& request, const ResolvedSeeds& seeds,
      const Reserve& reserve) = 0;
};

}  // namespace millrace
