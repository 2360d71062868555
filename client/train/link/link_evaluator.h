// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/eval/evaluator.h"
#include "client/train/eval/inference.h"
#include "client/train/eval/metric.h"
#include "client/train/group/collectives.h"
#include "client/train/link/link_ranks.h"
#include "client/train/link/link_table.h"
#include "client/train/task/link_batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Evaluates how well a model tells the edges of splits from negatives.
//
// kFull: rows of all nodes once, by exact inference; kSampled: rows from
// batches around the edges, as in training (temporal jobs).
// EvalNegatives::kDefault is kGiven where a split has negatives; else for mrr
// and hits@K kAll with kFull and 100 destinations a seed with kSampled, for
// others one pair a seed. The same negatives in each evaluation.
// mrr and hits@K count the destinations; with kAll both ends.
class LinkEvaluator final : public Evaluator {
 public:
  struct Splits {
    std::optional<std::string> valid, test;
    // kAll: edges that do not count as negatives.
    std::vector<const LinkTable*> known;
  };

  // Keeps references to `model` and `collectives`.
  // INVALID_ARGUMENT: negatives that do not fit the metric or the inference
  // (says which do) or their job; kFull, where most edges of a split are in the
  // graph. Errors of the source, which is asked for some.
  static absl::StatusOr<std::unique_ptr<LinkEvaluator>> Create(
      std::shared_ptr<BatchSource> source, const JobSpec& job, Model& model,
      Collectives& collectives, const Splits& splits,
      const EvaluationOptions& options);

  absl::Status CheckMemory(bool predicts) const override;
  absl::StatusOr<Accuracy> Run() override;
  // Rows of the destinations' type.
  absl::StatusOr<at::Tensor> Predict(bool embeddings) override;

 private:
  LinkEvaluator(std::shared_ptr<BatchSource> source, const ResolvedJob& job,
                Model& model, Collectives& collectives, const Splits& splits,
                const EvaluationOptions& options);

  // What the edges of a split are compared with.
  EvalNegatives NegativesOf(const std::string& split) const;
  Negatives DrawnOf(EvalNegatives negatives) const;
  absl::Status Check(const std::string& split) const;
  absl::Status CheckGiven(const std::string& split) const;
  // Checks that exact inference does not see the edges that it evaluates.
  absl::Status CheckUnseen(const std::string& split) const;
  // The job that brings the edges of a split, and whatever they need.
  JobSpec JobOf(const std::string& split, const Negatives& negatives) const;
  absl::StatusOr<std::optional<double>> Count(
      const std::optional<std::string>& split);
  absl::Status CountBatch(const Batch& batch, NegativeMode mode, bool among_all,
                          Metric& metric);
  // The rows of the ends of a batch's edges.
  absl::StatusOr<LinkEnds> RowsOf(const Batch& batch, const LinkBatch& links);
  void CountAmongAll(const LinkBatch& links, const LinkEnds& rows,
                     Metric& metric) const;
  void CountScores(const LinkBatch& links, const LinkEnds& rows,
                   Metric& metric) const;

  const std::shared_ptr<BatchSource> source_;  // shared with the trainer
  const JobSpec job_;
  const RelationIndex relation_;
  Model& model_;
  Collectives& collectives_;
  const Splits splits_;
  const EvaluationOptions options_;
  FullInference full_;
  const KnownLinks known_;
  std::vector<at::Tensor> rows_;  // kFull: per type, of all nodes; while Run()
};

}  // namespace millrace
