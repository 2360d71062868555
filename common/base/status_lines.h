// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace millrace {

// The first line of a message: what went wrong, without what to do.
std::string FirstLine(const absl::Status& status);
// The rest of the message, starting with its line feed; empty if there is none.
std::string AdviceOf(const absl::Status& status);

}  // namespace millrace
