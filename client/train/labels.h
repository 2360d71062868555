// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace millrace {

// What cross-entropy leaves out (torch's ignore_index).
inline constexpr int64_t kUnlabelled = -100;

// Class numbers of one row each, kLong, from a label column as stored:
// integers, or floats with NaN for unlabelled; [n] or [n, 1]. Negative
// integers are unlabelled too.
// INVALID_ARGUMENT: a label that is no whole number. UNIMPLEMENTED: several
// labels a row.
absl::StatusOr<at::Tensor> ClassLabels(const at::Tensor& stored);

}  // namespace millrace
