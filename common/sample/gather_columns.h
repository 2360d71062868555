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

// Returns an array of what GatherRows() writes. Features are read by
// `features`, which also provides their memory, or by the CPU if it is null.
// Fails like GatherRows() and FeatureRows.
absl::StatusOr<Array> GatherArray(const Store& store, TypeIndex type,
                                  NodeColumn column,
                                  std::span<const uint64_t> ids,
                                  FeatureRows* features = nullptr);

// Fills the columns of a batch of `job` whose topology is complete. All
// partitions must be mapped. `features`: as for GatherArray(), also for edges.
// RESOURCE_EXHAUSTED: the columns would not fit into the memory of this
// machine. Also the errors of FeatureRows.
absl::Status GatherColumns(const Store& store, const ResolvedJob& job,
                           const Columns& columns, Batch& batch,
                           FeatureRows* features = nullptr);

}  // namespace millrace
