// SPDX-License-Identifier: Apache-2.0
// Enumerators in messages. This version may not know all of their numbers.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"

namespace millrace {

// The INVALID_ARGUMENT error for an unknown number, which it names with
// `field`.
absl::Status UnknownEnumerator(std::string_view field, int number);

// Converts the number of a v1::DType. INVALID_ARGUMENT: it is unknown.
absl::StatusOr<DType> DTypeFromProto(int number, std::string_view field);

}  // namespace millrace
