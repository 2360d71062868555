// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/metric.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/train/task/labels.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

bool IsF1(MetricKind kind) {
  return kind == MetricKind::kF1Micro || kind == MetricKind::kF1Macro;
}

// Uses the rank sum of Mann and Whitney. Returns nullopt unless both labels
// occur. A NaN logit counts as being on the wrong side of all others.
std::optional<double> ColumnRocAuc(const at::Tensor& logits,
                                   const at::Tensor& labels) {
  const at::Tensor own_logits = logits.contiguous();
  const at::Tensor own_labels = labels.contiguous();
  const double* logit = own_logits.const_data_ptr<double>();
  const double* label = own_labels.const_data_ptr<double>();
  std::vector<std::pair<double, bool>> scored;
  int64_t positive = 0;
  for (int64_t i = 0; i < own_logits.size(0); ++i) {
    if (std::isnan(label[i])) continue;
    constexpr double kLargest = std::numeric_limits<double>::infinity();
    const double worst = label[i] == 1 ? -kLargest : kLargest;
    scored.emplace_back(std::isnan(logit[i]) ? worst : logit[i], label[i] == 1);
    positive += label[i] == 1;
  }
  const auto count = static_cast<int64_t>(scored.size());
  if (positive == 0 || positive == count) return std::nullopt;
  std::sort(scored.begin(), scored.end());
  double rank_sum = 0;
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    int64_t ties = 0;
    while (end < count && scored[end].first == scored[begin].first) {
      ties += scored[end++].second;
    }
    // Ranks begin + 1 .. end share their mean.
    rank_sum += static_cast<double>(ties) *
                (static_cast<double>(begin + end + 1) / 2.0);
  }
  const auto positives = static_cast<double>(positive);
  return (rank_sum - positives * (positives + 1.0) / 2.0) /
         (positives * static_cast<double>(count - positive));
}

}  // namespace

Metric::Metric(const Task& task, int64_t outputs)
    : task_(task),
      outputs_(outputs),
      sums_(at::zeros({IsF1(task.metric) ? outputs * 3 : 2}, at::kDouble)) {}

void Metric::Add(const at::Tensor& logits, const at::Tensor& labels) {
  if (labels.numel() == 0) return;
  if (task_.metric == MetricKind::kRocAuc) return AddScores(logits, labels);
  if (IsF1(task_.metric)) return AddConfusion(logits, labels);
  sums_[1].add_(CountLabelled(labels));
  if (task_.metric == MetricKind::kRmse) {
    sums_[0].add_(logits.to(at::kDouble)
                      .sub(labels.nan_to_num(0.0))
                      .mul(Labelled(labels))
                      .square()
                      .sum());
  } else {
    sums_[0].add_(CountCorrect(task_.kind, logits, labels));
  }
}

void Metric::AddRanks(const at::Tensor& ranks) {
  const at::Tensor gained = task_.metric == MetricKind::kHits
                                ? ranks.le(task_.hits).to(at::kDouble)
                                : ranks.reciprocal();
  sums_[0].add_(gained.sum());
  sums_[1].add_(ranks.size(0));
}

void Metric::AddScores(const at::Tensor& logits, const at::Tensor& labels) {
  at::Tensor score = logits.to(at::kDouble);
  at::Tensor label = labels.to(at::kDouble);
  if (task_.kind == TaskKind::kSingle) {
    score = score.select(1, 1).sub(score.select(1, 0)).unsqueeze(1);
    label =
        label.masked_fill(labels.eq(kUnlabelled), std::nan("")).unsqueeze(1);
  }
  scores_.push_back(at::cat({score, label}, 1));
}

void Metric::AddConfusion(const at::Tensor& logits, const at::Tensor& labels) {
  if (task_.kind == TaskKind::kSingle) return AddClasses(logits, labels);
  const at::Tensor predicted = logits.gt(0);
  const at::Tensor actual = labels.eq(1);
  const at::Tensor counted = Labelled(labels);
  const auto count = [&](const at::Tensor& p, const at::Tensor& a) {
    return p.logical_and(a).logical_and(counted).sum(0).to(at::kDouble);
  };
  sums_.view({outputs_, 3})
      .add_(at::stack(
          {count(predicted, actual), count(predicted, actual.logical_not()),
           count(predicted.logical_not(), actual)},
          1));
}

// The same for one class per row, without a matrix of all rows and classes.
void Metric::AddClasses(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor rows = Labelled(labels).nonzero().squeeze(1);
  const at::Tensor predicted = at::argmax(logits, 1).index_select(0, rows);
  const at::Tensor actual = labels.index_select(0, rows);
  const at::Tensor right = actual.masked_select(predicted.eq(actual));
  const auto count = [this](const at::Tensor& classes) {
    return at::bincount(classes, {}, outputs_).to(at::kDouble);
  };
  const at::Tensor hits = count(right);
  sums_.view({outputs_, 3})
      .add_(at::stack(
          {hits, count(predicted).sub(hits), count(actual).sub(hits)}, 1));
}

absl::Status Metric::AddOverRanks(Collectives& collectives) {
  MILLRACE_RETURN_IF_ERROR(collectives.AllReduceSum(sums_));
  if (task_.metric != MetricKind::kRocAuc || collectives.world() == 1) {
    return absl::OkStatus();
  }
  const int64_t width = task_.kind == TaskKind::kSingle ? 2 : 2 * outputs_;
  const at::Tensor own =
      scores_.empty() ? at::zeros({0, width}, at::kDouble) : at::cat(scores_);
  MILLRACE_ASSIGN_OR_RETURN(
      const at::Tensor counts,
      collectives.GatherRows(at::full({}, own.size(0), at::kLong)));
  const int64_t first =
      counts.narrow(0, 0, collectives.rank()).sum().item().toLong();
  // Each row is zero on all ranks but one, so the sum is that rank's row.
  at::Tensor all =
      at::zeros({counts.sum().item().toLong(), width}, at::kDouble);
  all.narrow(0, first, own.size(0)).copy_(own);
  MILLRACE_RETURN_IF_ERROR(collectives.AllReduceSum(all));
  scores_ = {all};
  return absl::OkStatus();
}

std::optional<double> Metric::RocAuc() const {
  if (scores_.empty()) return std::nullopt;
  const at::Tensor all = at::cat(scores_);
  const int64_t columns = all.size(1) / 2;
  double sum = 0;
  int counted = 0;
  for (int64_t k = 0; k < columns; ++k) {
    const std::optional<double> value =
        ColumnRocAuc(all.select(1, k), all.select(1, columns + k));
    if (!value.has_value()) continue;
    sum += *value;
    ++counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / counted;
}

std::optional<double> Metric::F1() const {
  const double* sums = sums_.const_data_ptr<double>();
  double macro = 0, all_true = 0, all = 0;
  int occurring = 0;
  for (int64_t k = 0; k < outputs_; ++k) {
    const double twice_true = 2 * sums[3 * k];
    const double total = twice_true + sums[3 * k + 1] + sums[3 * k + 2];
    if (total == 0) continue;
    macro += twice_true / total;
    ++occurring;
    all_true += twice_true;
    all += total;
  }
  if (occurring == 0) return std::nullopt;
  return task_.metric == MetricKind::kF1Macro ? macro / occurring
                                              : all_true / all;
}

std::optional<double> Metric::Value() const {
  if (task_.metric == MetricKind::kRocAuc) return RocAuc();
  if (IsF1(task_.metric)) return F1();
  const double* sums = sums_.const_data_ptr<double>();
  if (sums[1] == 0) return std::nullopt;
  const double mean = sums[0] / sums[1];
  return task_.metric == MetricKind::kRmse ? std::sqrt(mean) : mean;
}

}  // namespace millrace
