// SPDX-License-Identifier: Apache-2.0
#include "common/cli/durations.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<absl::Duration> ParseDurationOption(std::string_view option,
                                                   const std::string& text,
                                                   absl::Duration min,
                                                   absl::Duration max) {
  double seconds = 0;
  const bool is_number =
      absl::SimpleAtod(text, &seconds) && absl::ascii_isdigit(text.back());
  absl::Duration duration;
  if (!absl::ParseDuration(is_number ? text + "s" : text, &duration) ||
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
