// SPDX-License-Identifier: Apache-2.0
// Slurm's lists, as its environment variables hold them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace {

// The first host of a list: rack02-node1 of "rack[02-04,7]-node[1-2],login".
// INVALID_ARGUMENT: not such a list.
absl::StatusOr<std::string> FirstSlurmHost(std::string_view list);

// Tasks on the host of number `host`, from 0, by a list such as "2(x3),1".
// INVALID_ARGUMENT: not such a list, or it has no such host.
absl::StatusOr<int> SlurmTasksOnHost(std::string_view list, int host);

}  // namespace millrace
