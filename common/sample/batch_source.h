// SPDX-License-Identifier: Apache-2.0
// The one seam between who makes batches and who uses them: in this process
// (LocalBatchSource), a fleet (client/), later a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"

namespace millrace {

// Names one batch and what it carries.
struct BatchRequest {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  // Without it the seeds are those of the job's split at (epoch, batch).
  std::optional<ExplicitSeeds> explicit_seeds = {};
  Columns columns = {};
};

// Node columns that can be gathered by id.
enum class NodeColumn : uint8_t {
  kFeature = 0,
  kLabel = 1,
  kOriginalId = 2,
  kInDegree = 3,   // length of the node's in-lists, summed over relations
  kOutDegree = 4,  // the same of its out-lists
  kTime = 5,
};

// Threads: any thread may call any method.
class BatchSource {
 public:
  using BatchCallback = std::function<void(absl::StatusOr<Batch>)>;

  // Pending fetches are ended with CANCELLED before this returns.
  virtual ~BatchSource() = default;

  // The graph that is served: schema, books, splits, versions, fingerprint.
  // (`files` is empty for a fleet.)
  virtual const Manifest& manifest() const = 0;

  // Makes one batch; `done` runs exactly once, on a thread of the source, or
  // on the caller's before Fetch returns if it fails at once. It must neither
  // block nor end the source. `job` must outlive the call of `done`.
  // Errors reach `done`: INVALID_ARGUMENT (seeds out of range), OUT_OF_RANGE
  // (no such batch), NOT_FOUND (no such split), UNAVAILABLE naming the
  // partition once partition_wait is over, DATA_LOSS, FAILED_PRECONDITION.
  virtual void Fetch(const ResolvedJob& job, BatchRequest request,
                     BatchCallback done) = 0;

  // Rows of a column for ids of one type, in their order; blocks.
  virtual absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                                       std::span<const uint64_t> ids) = 0;

  // The ids of original ids, in their order; blocks.
  // INVALID_ARGUMENT: an original id out of range (names position and value).
  virtual absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) = 0;
};

}  // namespace millrace
