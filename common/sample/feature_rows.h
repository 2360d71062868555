// SPDX-License-Identifier: Apache-2.0
// Where feature rows are read if not by the CPU from the store: from memory of
// GPUs, for instance. Wherever one is passed, a null pointer stands for the
// CPU.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/graph/schema.h"
#include "common/sample/place_counts.h"

namespace millrace {

// Reads feature rows of one store. Thread-safe.
class FeatureRows {
 public:
  virtual ~FeatureRows() = default;

  // Returns an array of what GatherRows() (gather.h) writes for
  // NodeColumn::kFeature. It is on the GPU of `memory`, which may be null, if
  // that GPU reads rows, and otherwise on the host. Its memory is
  // used again at once when its last copy is freed; see BatchRequest::memory.
  // It may outlive this object. FAILED_PRECONDITION: the rows, or their
  // numbers, do not fit into the memory of a device. RESOURCE_EXHAUSTED: it is
  // busy, or the host has too little memory. UNAVAILABLE: it has failed. Also
  // the errors of GatherRows(), word for word.
  virtual absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                            std::span<const uint64_t> ids,
                                            ArrayMemory* memory) = 0;
  // The same for GatherEdgeRows(): row i is rows[i] of partition parts[i].
  virtual absl::StatusOr<Array> GatherEdges(RelationIndex relation,
                                            std::span<const uint32_t> parts,
                                            std::span<const uint64_t> rows,
                                            ArrayMemory* memory) = 0;

  // Returns what has been read so far.
  virtual FeatureRowCounts counts() const = 0;
};

}  // namespace millrace
