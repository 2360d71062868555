// SPDX-License-Identifier: Apache-2.0
// Parses the lists in Slurm's environment variables.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace {

// Returns the first host of a list: for "rack[02-04,7]-node[1-2],login",
// rack02-node1. INVALID_ARGUMENT: not such a list.
absl::StatusOr<std::string> FirstSlurmHost(std::string_view list);

// Returns the number of tasks on host number `host` (from 0), given a list such
// as "2(x3),1". INVALID_ARGUMENT: not such a list, or it has no such host.
absl::StatusOr<int> SlurmTasksOnHost(std::string_view list, int host);

}  // namespace millrace
