// SPDX-License-Identifier: Apache-2.0
#include "common/cli/durations.h"

#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<absl::Duration> ParseDurationOption(std::string_view option,
                                                   const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) &&
      duration >= absl::ZeroDuration()) {
    return duration;
  }
  return UsageError(StrCat(option, " \"", text,
                           "\" is not a duration; write e.g. 500ms, 30s or "
                           "2m"));
}

}  // namespace millrace
