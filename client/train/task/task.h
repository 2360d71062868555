// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sample/job.h"

namespace millrace {

// What is learned about each seed: one class (softmax), several binary values
// (sigmoid each), one binary value (sigmoid), numbers (squared error), or
// whether it is an edge (LinkLoss).
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
  // Only for kLink:
  LinkLoss loss = LinkLoss::kBce;
  NegativeMode negatives = NegativeMode::kNone;

  // Parses the words for a task and a metric. An empty metric means the task's
  // own: accuracy for single, f1-micro for multi, rocauc for binary and link,
  // rmse for regression. INVALID_ARGUMENT: an unknown word, or a metric that
  // does not fit the task.
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

// The result of a forward pass over one rank's seeds: numbers on the model's
// device, since reading them would wait for it.
struct Outcome {
  at::Tensor loss;     // summed over what was counted; differentiable
  at::Tensor counted;  // labelled values, or scores
  at::Tensor correct;  // correct ones among them
};

// Return the words for a task and its metric.
std::string TaskName(TaskKind kind);
std::string MetricName(const Task& task);

// Returns the loss, summed over labelled values; differentiable in `logits`,
// which are [n, outputs]; `labels` are as from ReadLabels().
at::Tensor LossSum(TaskKind kind, const at::Tensor& logits,
                   const at::Tensor& labels);

// Counts the labelled values that the logits predict correctly: the largest
// logit is that of the class, or the logit's sign matches the label. Returns a
// kLong number, which is 0 for kRegression.
at::Tensor CountCorrect(TaskKind kind, const at::Tensor& logits,
                        const at::Tensor& labels);

}  // namespace millrace
