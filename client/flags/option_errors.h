// SPDX-License-Identifier: Apache-2.0
// Errors of the library in terms of a program's options.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// The option of a field, such as "--batch-size" of "batch_size".
std::string OptionOfField(std::string_view field);

// The error as a user of millrace or millrace-train should see it: fields that
// its FieldError names are options, and a second line says what to do, unless
// the message has one. Other statuses are returned as they are.
absl::Status InTermsOfOptions(const absl::Status& status);

}  // namespace millrace
