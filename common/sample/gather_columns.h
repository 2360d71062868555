// SPDX-License-Identifier: Apache-2.0
// Columns of whole batches, from mapped partitions.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/graph/store.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/feature_rows.h"

namespace millrace {

// Who reads columns, and where to.
struct ColumnPlaces {
  // Reads features; null if the CPU reads them.
  FeatureRows* features = nullptr;
  // Provides the memory of all that the CPU reads, and has the GPU that
  // features are for; null for the process's.
  ArrayMemory* memory = nullptr;
};

// Returns an array of what GatherRows() writes. Fails like GatherRows() and
// FeatureRows.
absl::StatusOr<Array> GatherArray(const Store& store, TypeIndex type,
                                  NodeColumn column,
                                  std::span<const uint64_t> ids,
                                  const ColumnPlaces& places = {});

// The same for GatherEdgeRows(): row i is rows[i] of partition parts[i].
absl::StatusOr<Array> GatherEdgeArray(const Store& store,
                                      RelationIndex relation,
                                      std::span<const uint32_t> parts,
                                      std::span<const uint64_t> rows,
                                      const ColumnPlaces& places = {});

// Fills the columns of a batch of `job` whose topology is complete. All
// partitions must be mapped.
// RESOURCE_EXHAUSTED: the columns would not fit into the memory of this
// machine. Also the errors of FeatureRows.
absl::Status GatherColumns(const Store& store, const ResolvedJob& job,
                           const Columns& columns, Batch& batch,
                           const ColumnPlaces& places = {});

}  // namespace millrace
