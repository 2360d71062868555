// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/train/task/task.h"

namespace millrace {

// The label that cross-entropy leaves out (torch's ignore_index).
inline constexpr int64_t kUnlabelled = -100;

// Returns the labels for a task from a label column as stored, [n] or [n, k].
// Stored NaN and, except for kRegression, negative numbers are unlabelled.
// kSingle: [n] kLong, class numbers or kUnlabelled.
// Others: [n, k] kFloat, NaN if unlabelled; values are 0 and 1, except for
// kRegression; k is 1 for kBinary.
// INVALID_ARGUMENT: a label or a number of columns that the task does not
// accept (names row and value).
absl::StatusOr<at::Tensor> ReadLabels(TaskKind kind, const at::Tensor& stored);

// Says which values are labelled: bool, in the shape of `labels`.
at::Tensor Labelled(const at::Tensor& labels);
int64_t CountLabelled(const at::Tensor& labels);

}  // namespace millrace
