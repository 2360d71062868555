// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/train/group/collectives.h"
#include "client/train/task/task.h"

namespace millrace {

// One metric over the seeds of one split, counted batch by batch and added
// over ranks. Movable. Threads: one at a time.
//
// accuracy: the share of labelled values that CountCorrect counts.
// f1-micro, f1-macro: of classes (single) or columns (multi, binary); macro
// is the mean over those that occur as a label or as a prediction.
// rocauc: of one column's logit, the mean over columns that have both labels
// (multi); of the second logit minus the first (single, 2 classes). Ties count
// half.
// rmse: over all labelled values.
// mrr, hits@K: of ranks, which are added instead of logits.
class Metric {
 public:
  Metric(const Task& task, int64_t outputs);
  Metric(Metric&&) = default;

  // Adds logits [n, outputs] and labels (see ReadLabels) of n seeds, all on the
  // CPU. Throws what LibTorch throws.
  void Add(const at::Tensor& logits, const at::Tensor& labels);
  // Adds ranks [n] kDouble on the CPU, from 1; tied ones may lie between two
  // integers.
  void AddRanks(const at::Tensor& ranks);
  // All ranks call it, once. Fails like Collectives.
  absl::Status AddOverRanks(Collectives& collectives);
  // nullopt if nothing that the metric needs was labelled.
  std::optional<double> Value() const;

 private:
  void AddScores(const at::Tensor& logits, const at::Tensor& labels);
  void AddConfusion(const at::Tensor& logits, const at::Tensor& labels);
  void AddClasses(const at::Tensor& logits, const at::Tensor& labels);
  std::optional<double> RocAuc() const;
  std::optional<double> F1() const;

  const Task task_;
  const int64_t outputs_;
  // Sums. accuracy: correct, labelled values. rmse: squared errors, labelled
  // values. mrr: 1 / rank, number of ranks. hits@K: ranks up to K, all ranks.
  // f1: [outputs, 3] true positives, false positives, false negatives.
  at::Tensor sums_;  // kDouble
  // rocauc: [n, 2 * columns] kDouble, all logits before all labels.
  std::vector<at::Tensor> scores_;
};

}  // namespace millrace
