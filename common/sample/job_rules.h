// SPDX-License-Identifier: Apache-2.0
// What the fields of a job must satisfy whatever the graph is.
#pragma once

#include "absl/status/status.h"
#include "common/sample/job.h"

namespace millrace {

// Checks the limits in the table of options (job_options.h), that the method
// reads every field that is set, and that the choices can be used together and
// need no other that is missing.
// INVALID_ARGUMENT (FieldError): one of these checks fails.
absl::Status CheckJobOptions(const JobSpec& spec);

}  // namespace millrace
