// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace millrace {

// The value of an option such as "--wait": from `min` to `max`, such as "500ms"
// or "2m"; numbers without a unit are seconds. A usage error, which names the
// option: anything else.
absl::StatusOr<absl::Duration> ParseDurationOption(
    std::string_view option, const std::string& text,
    absl::Duration min = absl::ZeroDuration(),
    absl::Duration max = absl::InfiniteDuration());

}  // namespace millrace
