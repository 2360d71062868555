// SPDX-License-Identifier: Apache-2.0
// What the fields of a job must satisfy whatever the graph is.
#pragma once

#include "absl/status/status.h"
#include "common/sample/job.h"

namespace millrace {

// Makes the checks that need no graph: limits in the table of options
// (job_options.h), fields of other methods, and options that conflict or
// require each other.
// INVALID_ARGUMENT (FieldError): one of these checks fails.
absl::Status CheckJobOptions(const JobSpec& spec);

}  // namespace millrace
