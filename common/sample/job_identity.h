// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/sample/job.h"

namespace millrace {

// Texts of the fields, by option (without "--"). Two training runs with jobs of
// the same texts get the same batches. Which fields have a text is in the table
// of options (JobOption::Identity).
std::map<std::string_view, std::string> JobIdentity(const JobSpec& spec);

}  // namespace millrace
