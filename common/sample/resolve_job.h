// SPDX-License-Identifier: Apache-2.0
// Checks what users want against the graph that they want it of.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/graph/schema.h"
#include "common/sample/job.h"

namespace millrace {

// Checks a job, with CheckJobOptions first, and replaces its names by numbers.
// INVALID_ARGUMENT: a value out of range, fields that cannot be used together.
// NOT_FOUND: no such type or relation. FAILED_PRECONDITION: the store lacks the
// direction, the weights, the times or the original ids of neighbours. Errors
// about a field of the spec have a FieldError (field_error.h).
absl::StatusOr<ResolvedJob> ResolveJob(const JobSpec& spec,
                                       const Manifest& manifest);

// FAILED_PRECONDITION (FieldError): columns that nothing in the graph has.
absl::Status CheckColumns(const Columns& columns, const Schema& schema);

}  // namespace millrace
