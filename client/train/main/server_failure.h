// SPDX-License-Identifier: Apache-2.0
// Error messages about a failed server that ran beside a trainer.
#pragma once

#include <deque>
#include <string>

#include "absl/status/status.h"

namespace millrace {

// Why the server named `what` ("the server of --partition 0") has ended, as it
// said in its log, whose last lines are given. `wait_status` is what waitpid()
// gave. INVALID_ARGUMENT (a UsageError): it refused its options. Otherwise
// UNAVAILABLE.
absl::Status ServerFailure(const std::string& what, int wait_status,
                           const std::deque<std::string>& last_lines);

// How to find its lines in this program's log, in which they are copied: "see
// its log above, ...".
std::string WhereItsLogIs();

}  // namespace millrace
