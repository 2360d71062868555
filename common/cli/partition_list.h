// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace millrace {

// The value of --partition: a number, a list such as "0,2", or "all", which
// gives an empty list. The result is ascending, without duplicates.
// A usage error: anything else.
absl::StatusOr<std::vector<int>> ParsePartitions(const std::string& text);

}  // namespace millrace
