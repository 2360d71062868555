// SPDX-License-Identifier: Apache-2.0
// Errors of the library in terms of a program's options.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/field_error.h"

namespace millrace {

// What a user can do about errors with a reason.
struct ReasonAdvice {
  Reason reason;
  std::string_view text;
};

// Returns the option for a field, such as "--batch-size" for "batch_size".
std::string OptionOfField(std::string_view field);

// Returns the error as a user of millrace or millrace-train should see it:
// fields that its FieldError names are options, and a second line says what to
// do, unless the message has one. `own` is this program's advice, in addition
// to the advice shared by both programs. Statuses without FieldError and reason
// are returned as they are.
absl::Status InTermsOfOptions(const absl::Status& status,
                              std::span<const ReasonAdvice> own = {});

}  // namespace millrace
