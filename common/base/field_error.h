// SPDX-License-Identifier: Apache-2.0
// Errors about one field of what a caller asked for, in a form that programs
// can read. Libraries name the fields of their structs; a program shows a user
// its own names for these, such as options, and says what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

struct FieldError {
  // What is wrong, which is also how ToText() reads.
  enum class Problem : uint8_t {
    kInvalid = 0,     // "FIELD VALUE: LIMIT"
    kOutOfRange = 1,  // "FIELD VALUE is out of range: LIMIT"
    kMissing = 2,     // "FIELD is needed: LIMIT"
    kConflict = 3,    // "FIELD VALUE and OTHER cannot be used together"
    kNeeds = 4,       // "FIELD VALUE needs OTHER"
    // "VALUE; the limit is LIMIT". The value is computed from the field, which
    // must be made smaller.
    kTooMuch = 5,
    // A program's own error, whose message names options already; the other
    // members are empty.
    kUsage = 6,
  };
  Problem problem = Problem::kInvalid;
  std::string field = {};  // such as "batch_size"
  std::string value = {};  // empty where the field alone says enough
  std::string limit = {};  // what the value must be, or what is wrong with it
  // A second field and its value: kConflict, kNeeds.
  std::string other_field = {};
  std::string other_value = {};

  friend bool operator==(const FieldError&, const FieldError&) = default;
};

// A word that says why something fails, such as "no_labels", where the code and
// the FieldError do not. Programs have advice for each word. A reason never
// leaves the process.
struct Reason {
  std::string_view word = {};
};

// Returns a program's name for a field.
using FieldNames = std::function<std::string(std::string_view field)>;

// What is wrong, in one line.
std::string ToText(const FieldError& error, const FieldNames& names);

// A status with this code and error, whose message uses the fields' own names.
absl::Status FieldStatus(absl::StatusCode code, const FieldError& error,
                         Reason reason = {});
// The same with INVALID_ARGUMENT.
absl::Status InvalidField(const FieldError& error, Reason reason = {});

// The same error, with its FieldError and reason, in other words.
absl::Status Reworded(const absl::Status& status, std::string_view message);
// The same error with a second line, which says what to do.
absl::Status WithAdvice(const absl::Status& status, std::string_view advice);
// Whether the message has a second line.
bool HasAdvice(const absl::Status& status);
// The same error with a reason; OK and the empty reason change nothing.
absl::Status WithReason(absl::Status status, Reason reason);
// Empty if there is none.
std::string ReasonOf(const absl::Status& status);
// The same error, but its message uses these names for the fields of its
// FieldError. Other statuses are returned as they are.
absl::Status WithNames(const absl::Status& status, const FieldNames& names);

void SetFieldError(const FieldError& error, absl::Status& status);
// nullopt if the status has none, or one that cannot be read.
std::optional<FieldError> GetFieldError(const absl::Status& status);

// The functions below are only for programs.

// INVALID_ARGUMENT for a user who gave wrong options, which the message names.
absl::Status UsageError(std::string_view message);
// UNIMPLEMENTED for options that are not supported yet.
absl::Status UnsupportedError(std::string_view message);
// Marks the error as wrong usage if its code is INVALID_ARGUMENT or
// UNIMPLEMENTED; other errors are returned as they are.
absl::Status AsUsageError(absl::Status status);
// Whether a user gave wrong options.
bool IsUsageError(const absl::Status& status);

}  // namespace millrace
