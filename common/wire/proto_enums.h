// SPDX-License-Identifier: Apache-2.0
// Enumerators in messages, whose numbers may be unknown to this version.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"

namespace millrace {

// INVALID_ARGUMENT, naming the field and the number.
absl::Status UnknownEnumerator(std::string_view field, int number);

// `number` is that of a v1::DType. INVALID_ARGUMENT: it is unknown.
absl::StatusOr<DType> DTypeFromProto(int number, std::string_view field);

}  // namespace millrace
