// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/task.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/train/task/labels.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

struct TaskWords {
  TaskKind kind;
  const char* name;
  std::vector<MetricKind> metrics;  // suitable ones; the first is the default
};

const std::vector<TaskWords>& Tasks() {
  using enum MetricKind;
  static const std::vector<TaskWords> tasks = {
      {TaskKind::kSingle, "single", {kAccuracy, kF1Micro, kF1Macro, kRocAuc}},
      {TaskKind::kMulti, "multi", {kF1Micro, kF1Macro, kRocAuc, kAccuracy}},
      {TaskKind::kBinary, "binary", {kRocAuc, kAccuracy, kF1Micro, kF1Macro}},
      {TaskKind::kRegression, "regression", {kRmse}},
      {TaskKind::kLink, "link", {kRocAuc, kAccuracy, kMrr, kHits}}};
  return tasks;
}

// Returns the K of "hits@K"; 0 for other words.
int HitsOf(absl::string_view metric) {
  int hits = 0;
  const bool read =
      absl::ConsumePrefix(&metric, "hits@") && absl::SimpleAtoi(metric, &hits);
  return read && hits >= 1 ? hits : 0;
}

}  // namespace

std::string TaskName(TaskKind kind) {
  for (const TaskWords& task : Tasks()) {
    if (task.kind == kind) return task.name;
  }
  return "";
}

std::string MetricName(const Task& task) {
  switch (task.metric) {
    case MetricKind::kMrr:
      return "mrr";
    case MetricKind::kHits:
      return StrCat("hits@", task.hits);
    case MetricKind::kRocAuc:
      return "rocauc";
    case MetricKind::kF1Micro:
      return "f1-micro";
    case MetricKind::kF1Macro:
      return "f1-macro";
    case MetricKind::kRmse:
      return "rmse";
    case MetricKind::kAccuracy:
      break;
  }
  return "accuracy";
}

absl::StatusOr<Task> Task::Parse(const std::string& task,
                                 const std::string& metric) {
  for (const TaskWords& words : Tasks()) {
    if (words.name != task) continue;
    Task parsed{words.kind, words.metrics[0]};
    if (metric.empty()) return parsed;
    const int hits = HitsOf(metric);
    if (hits > 0) parsed.hits = hits;
    std::vector<std::string> names;
    for (const MetricKind kind : words.metrics) {
      parsed.metric = kind;
      const bool unread = kind == MetricKind::kHits && hits == 0;
      names.push_back(unread ? "hits@K" : MetricName(parsed));
      if (names.back() == metric && !unread) return parsed;
    }
    return WithAdvice(
        InvalidField({.field = "metric",
                      .value = StrCat("\"", metric, "\""),
                      .limit = StrCat("does not fit the task ", task)}),
        StrCat("use ", absl::StrJoin(names, ", ")));
  }
  return InvalidField(
      {.field = "task",
       .value = StrCat("\"", task, "\""),
       .limit = "is not one of single, multi, binary, regression and link"});
}

absl::Status Task::CheckOutputs(int64_t outputs) const {
  if (kind != TaskKind::kSingle || metric != MetricKind::kRocAuc ||
      outputs == 2) {
    return absl::OkStatus();
  }
  return WithAdvice(
      InvalidField(
          {.field = "metric",
           .value = "rocauc",
           .limit = StrCat("needs 2 classes, but the labels have ", outputs)}),
      "use accuracy, f1-micro or f1-macro");
}

at::Tensor LossSum(TaskKind kind, const at::Tensor& logits,
                   const at::Tensor& labels) {
  if (kind == TaskKind::kSingle) {
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum,
                                  kUnlabelled);
  }
  const at::Tensor labelled = Labelled(labels);
  // 0 for missing labels, because NaN times a weight of 0 would still be NaN.
  const at::Tensor values = labels.nan_to_num(0.0);
  if (kind == TaskKind::kRegression) {
    return logits.sub(values).mul(labelled).square().sum();
  }
  return at::binary_cross_entropy_with_logits(
      logits, values, labelled.to(at::kFloat), {}, at::Reduction::Sum);
}

at::Tensor CountCorrect(TaskKind kind, const at::Tensor& logits,
                        const at::Tensor& labels) {
  if (kind == TaskKind::kRegression || labels.numel() == 0) {
    return at::zeros({}, logits.options().dtype(at::kLong));
  }
  const at::Tensor right = kind == TaskKind::kSingle
                               ? at::argmax(logits, 1).eq(labels)
                               : logits.gt(0).to(at::kFloat).eq(labels);
  return right.sum();
}

}  // namespace millrace
