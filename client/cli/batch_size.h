// SPDX-License-Identifier: Apache-2.0
// How large the batches of a job are.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/sample/batch_source.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"

namespace millrace {

// Of one batch.
struct BatchSize {
  double nodes = 0;
  double edges = 0;
  double bytes = 0;  // as they arrive at a trainer
  // CPU seconds for making it in this process; 0 if it was not made.
  double cpu_seconds = 0;
};

// The most that a batch can hold: a node draws as many neighbours as its fanout
// says, and all of them are different nodes, as long as the graph has so many.
// FAILED_PRECONDITION: the method draws in a way that has no such bound.
absl::StatusOr<BatchSize> BoundBatch(const ResolvedJob& job,
                                     const Columns& columns,
                                     const Schema& schema);

// The mean of up to `batches` batches that are made twice in this process, the
// second time with their pages in memory. Fails like ResolveJob,
// RequestPlan::Create and FetchOne.
absl::StatusOr<BatchSize> MeasureBatch(BatchSource& source, const JobSpec& spec,
                                       const Columns& columns,
                                       uint32_t batches);

}  // namespace millrace
