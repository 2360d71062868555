// SPDX-License-Identifier: Apache-2.0
// Where feature rows are read if not by the CPU from the store: from memory of
// GPUs, for instance. Wherever one is passed, a null pointer stands for the
// CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/sample/place_counts.h"

namespace millrace {

// Reads feature rows of one store. Thread-safe.
class FeatureRows {
 public:
  virtual ~FeatureRows() = default;

  // Returns uninitialised memory for rows, aligned to 64 bytes. The last copy
  // of the pointer frees it, on any thread, also after this object has been
  // destroyed.
  // RESOURCE_EXHAUSTED: there is not enough. UNAVAILABLE: the device has
  // failed.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Allocate(
      uint64_t bytes) = 0;

  // Does what GatherRows() (gather.h) does for NodeColumn::kFeature. `out` must
  // be in memory from Allocate().
  // FAILED_PRECONDITION: the rows' numbers do not fit into the memory of a
  // device. RESOURCE_EXHAUSTED: it is busy. UNAVAILABLE: it has failed. Also
  // the errors of GatherRows(), word for word.
  virtual absl::Status GatherNodes(TypeIndex type,
                                   std::span<const uint64_t> ids,
                                   std::byte* out) = 0;
  // The same for GatherEdgeRows(): row i is rows[i] of partition parts[i].
  virtual absl::Status GatherEdges(RelationIndex relation,
                                   std::span<const uint32_t> parts,
                                   std::span<const uint64_t> rows,
                                   std::byte* out) = 0;

  // Returns what has been read so far.
  virtual FeatureRowCounts counts() const = 0;
};

}  // namespace millrace
