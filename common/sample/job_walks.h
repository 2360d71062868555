// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/graph/schema.h"
#include "common/sample/job.h"

namespace millrace {

// Checks the walks of kWalk and kPpr against a graph, fills in job.metapath,
// and gives the job the hops and fanouts of its walks. The seeds and fanouts of
// `job` must have been resolved: kWalk has no fanouts, kPpr only those of its
// one relation. Does nothing for other methods.
// INVALID_ARGUMENT: a value is out of range, or the metapath is missing or does
// not fit the seeds or the method. NOT_FOUND: no such relation. Errors about a
// field of the spec have a FieldError.
absl::Status ResolveWalks(const Schema& schema, ResolvedJob& job);

}  // namespace millrace
