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
// (multi); of the second logit less the first (single, 2 classes). Ties count
// half.
// rmse: over all labelled values.
// mrr, hits@K: of ranks, which take the place of logits.
class Metric {
 public:
  Metric(const Task& task, int64_t outputs);
  Metric(Metric&&) = default;

  // Logits [n, outputs] and labels (as ReadLabels gives them) of more seeds.
  // Throws what LibTorch throws.
  void Add(const at::Tensor& logits, const at::Tensor& labels);
  // Ranks [n] kDouble from 1 on; a tie may stand between two.
  void AddRanks(const at::Tensor& ranks);
  // All ranks call it, once. Errors of Collectives.
  absl::Status AddOverRanks(Collectives& collectives);
  // nullopt: nothing that the metric needs was labelled.
  std::optional<double> Value() const;

 private:
  void AddScores(const at::Tensor& logits, const at::Tensor& labels);
  void AddConfusion(const at::Tensor& logits, const at::Tensor& labels);
  void AddClasses(const at::Tensor& logits, const at::Tensor& labels);
  std::optional<double> RocAuc() const;
  std::optional<double> F1() const;

  const Task task_;
  const int64_t outputs_;
  // What adds up. accuracy: right, labelled. rmse: squared errors, labelled.
  // mrr: 1 / rank, ranks. hits@K: ranks up to K, ranks.
  // f1: [outputs, 3] true positives, false positives, false negatives.
  at::Tensor sums_;  // kDouble
  // rocauc: [n, columns] logits beside as many columns of labels; kDouble.
  std::vector<at::Tensor> scores_;
};

}  // namespace millrace
