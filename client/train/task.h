// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// What is learned of each seed: one class (softmax), several yes or no
// (sigmoid each), one yes or no (sigmoid), or numbers (squared error).
enum class TaskKind { kSingle, kMulti, kBinary, kRegression };
enum class MetricKind { kAccuracy, kRocAuc, kF1Micro, kF1Macro, kRmse };

struct Task {
  TaskKind kind = TaskKind::kSingle;
  MetricKind metric = MetricKind::kAccuracy;

  // --task and --metric. An empty metric is the task's own: accuracy of
  // single, f1-micro of multi, rocauc of binary, rmse of regression.
  // INVALID_ARGUMENT: no such word, or a metric that does not fit the task.
  static absl::StatusOr<Task> Parse(const std::string& task,
                                    const std::string& metric);

  // INVALID_ARGUMENT: the metric is not defined of so many classes or columns.
  absl::Status CheckOutputs(int64_t outputs) const;

  // Whether value `a` of the metric is better than `b`.
  bool Better(double a, double b) const {
    return metric == MetricKind::kRmse ? a < b : a > b;
  }
};

// --task's and --metric's words.
std::string TaskName(TaskKind kind);
std::string MetricName(MetricKind kind);

// The loss, summed over labelled values; differentiable in `logits`, which
// are [n, outputs]. `labels` as ReadLabels gives them.
at::Tensor LossSum(TaskKind kind, const at::Tensor& logits,
                   const at::Tensor& labels);

// The labelled values that the logits are right about: the largest logit is
// the class's, or its sign is the label. 0 for kRegression.
int64_t CountCorrect(TaskKind kind, const at::Tensor& logits,
                     const at::Tensor& labels);

}  // namespace millrace
