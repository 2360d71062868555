// SPDX-License-Identifier: Apache-2.0
// The interface between the makers of batches and their users. Implementations
// sample in this process (LocalBatchSource) or ask a fleet (client/).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"
#include "common/sample/place_counts.h"

namespace millrace {

// Names one batch and what it carries.
struct BatchRequest {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  // If not set, the seeds come from the job's split, at (epoch, batch).
  std::optional<ExplicitSeeds> explicit_seeds = {};
  Columns columns = {};
  // Provides the memory of large arrays; null for that of the process. What the
  // source makes on this memory's GPU stays there: see EdgeBlock and NodeBlock.
  // It is complete when the batch is passed on, so any stream may read it. Its
  // memory is used again as soon as the last copy of such an array is freed, so
  // wait for all work on the array first. Shared with the arrays.
  std::shared_ptr<ArrayMemory> memory = nullptr;
};

// Node columns that can be gathered by id.
enum class NodeColumn : uint8_t {
  kFeature = 0,
  kLabel = 1,
  kOriginalId = 2,
  kInDegree = 3,   // length of the node's in-lists, summed over relations
  kOutDegree = 4,  // the same for its out-lists
  kTime = 5,
};

// Threads: any thread may call any method.
class BatchSource {
 public:
  using BatchCallback = std::function<void(absl::StatusOr<Batch>)>;

  // Ends pending fetches with CANCELLED before it returns.
  virtual ~BatchSource() = default;

  // The graph that is served: schema, books, splits, versions, fingerprint.
  // (`files` is empty for a fleet.)
  virtual const Manifest& manifest() const = 0;

  // Makes one batch and passes it to `done`, which is called exactly once: on a
  // thread of the source or, if Fetch() fails immediately, on the caller's
  // thread before it returns. `done` must not block and must not destroy the
  // source. `job` must outlive the call to `done`.
  // Errors are passed to `done`. INVALID_ARGUMENT: seeds out of range.
  // OUT_OF_RANGE: no such batch, or one that is too large. NOT_FOUND: no such
  // split. UNAVAILABLE: no server for a partition, which the message names,
  // within partition_wait. DATA_LOSS: damaged files. FAILED_PRECONDITION: the
  // graph does not have a column or list that the job needs, or a server has
  // another store or split. RESOURCE_EXHAUSTED: too little memory, or too many
  // pending fetches.
  virtual void Fetch(const ResolvedJob& job, BatchRequest request,
                     BatchCallback done) = 0;

  // Returns the rows of a column for ids of one type, in the same order.
  // Blocks.
  virtual absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                                       std::span<const uint64_t> ids) = 0;

  // Returns the ids for these original ids, in the same order. Blocks.
  // INVALID_ARGUMENT: an original id is out of range; the message names its
  // position and value.
  virtual absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) = 0;

  // How much CPU and GPUs have done so far for this source; nullopt if servers
  // do the work.
  virtual std::optional<PlaceCounts> counts() const { return std::nullopt; }
};

}  // namespace millrace
