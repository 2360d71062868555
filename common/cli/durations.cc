// SPDX-License-Identifier: Apache-2.0
#include "common/cli/durations.h"

#include "absl/strings/ascii.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<absl::Duration> ParseDurationOption(std::string_view option,
                                                   const std::string& text,
                                                   absl::Duration min,
                                                   absl::Duration max) {
  const bool has_unit = text.empty() || !absl::ascii_isdigit(text.back());
  absl::Duration duration;
  if (!absl::ParseDuration(has_unit ? text : text + "s", &duration) ||
      duration < absl::ZeroDuration()) {
    return UsageError(StrCat(option, " \"", text,
                             "\" is not a duration; write e.g. 500ms, 30s or "
                             "2m"));
  }
  if (duration < min || duration > max) {
    return UsageError(StrCat(option, " \"", text, "\" is not from ",
                             absl::FormatDuration(min), " to ",
                             absl::FormatDuration(max)));
  }
  return duration;
}

}  // namespace millrace
