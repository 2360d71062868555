// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/sample/job.h"

namespace millrace {

// Returns the fields that must be equal for two training runs to count as the
// same, as text by option (without "--"). The table of options says which
// fields these are (JobOption::Identity).
std::map<std::string_view, std::string> JobIdentity(const JobSpec& spec);

}  // namespace millrace
