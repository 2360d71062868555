// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sample/job.h"

namespace millrace {

// What is learned of each seed: one class (softmax), several yes or no
// (sigmoid each), one yes or no (sigmoid), numbers (squared error), or that
// there is an edge (LinkLoss).
enum class TaskKind { kSingle, kMulti, kBinary, kRegression, kLink };
enum class MetricKind {
  kAccuracy,
  kRocAuc,
  kF1Micro,
  kF1Macro,
  kRmse,
  kMrr,   // the mean of 1 / rank
  kHits,  // the share of ranks up to Task::hits
};
// See LinkOutcome.
enum class LinkLoss { kBce, kSoftmax };

struct Task {
  TaskKind kind = TaskKind::kSingle;
  MetricKind metric = MetricKind::kAccuracy;
  int hits = 10;
  // kLink:
  LinkLoss loss = LinkLoss::kBce;
  NegativeMode negatives = NegativeMode::kNone;

  // --task and --metric. An empty metric is the task's own: accuracy of
  // single, f1-micro of multi, rocauc of binary and link, rmse of regression.
  // INVALID_ARGUMENT: no such word, or a metric that does not fit the task.
  static absl::StatusOr<Task> Parse(const std::string& task,
                                    const std::string& metric);

  // INVALID_ARGUMENT: the metric cannot have that many classes or columns.
  absl::Status CheckOutputs(int64_t outputs) const;

  // Whether value `a` of the metric is better than `b`.
  bool Better(double a, double b) const {
    return metric == MetricKind::kRmse ? a < b : a > b;
  }
  bool ranks() const {
    return metric == MetricKind::kMrr || metric == MetricKind::kHits;
  }
};

// What a forward pass came to, of one rank's seeds.
struct Outcome {
  at::Tensor loss;      // summed over what was counted; differentiable
  int64_t counted = 0;  // labelled values, or scores
  int64_t correct = 0;  // of them
};

// --task's and --metric's words.
std::string TaskName(TaskKind kind);
std::string MetricName(const Task& task);

// The loss, summed over labelled values; differentiable in `logits`, which
// are [n, outputs]. `labels` as ReadLabels gives them.
at::Tensor LossSum(TaskKind kind, const at::Tensor& logits,
                   const at::Tensor& labels);

// The labelled values that the logits are right about: the largest logit is
// the class's, or its sign is the label. 0 for kRegression.
int64_t CountCorrect(TaskKind kind, const at::Tensor& logits,
                     const at::Tensor& labels);

}  // namespace millrace
