// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace millrace {

// The value of an option such as "--wait": 0 or more, such as "500ms" or "2m".
// A usage error, which names the option: anything else.
absl::StatusOr<absl::Duration> ParseDurationOption(std::string_view option,
                                                   const std::string& text);

}  // namespace millrace
