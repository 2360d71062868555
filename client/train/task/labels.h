// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/train/task/task.h"

namespace millrace {

// What cross-entropy leaves out (torch's ignore_index).
inline constexpr int64_t kUnlabelled = -100;

// The labels of a task from a label column as stored, [n] or [n, k].
// kSingle: [n] kLong, class numbers, kUnlabelled where none.
// Others: [n, k] kFloat, NaN where unlabelled; k is 1 for kBinary, and values
// are 0 and 1 but for kRegression.
// Unlabelled are NaN and, but for kRegression, negative numbers.
// INVALID_ARGUMENT: a label or a number of columns that the task does not
// take (names row and value).
absl::StatusOr<at::Tensor> ReadLabels(TaskKind kind, const at::Tensor& stored);

// As many as `labels`, bool: which values are labelled.
at::Tensor Labelled(const at::Tensor& labels);
int64_t CountLabelled(const at::Tensor& labels);

}  // namespace millrace
