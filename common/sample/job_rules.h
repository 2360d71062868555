// SPDX-License-Identifier: Apache-2.0
// What the fields of a job must satisfy whatever the graph is.
#pragma once

#include "absl/status/status.h"
#include "common/sample/job.h"

namespace millrace {

// Checks the limits in the table of options (job_options.h), that no field is
// set which the method does not read, and the choices that exclude each other
// or need another.
// INVALID_ARGUMENT (FieldError): one of these is not so.
absl::Status CheckJobOptions(const JobSpec& spec);

}  // namespace millrace
