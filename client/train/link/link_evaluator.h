// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/device/memory_check.h"
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
// kFull computes the rows of all nodes once, by exact inference; kSampled takes
// them from batches around the edges, as in training (for temporal jobs).
// EvalNegatives::kDefault means kGiven for a split that has negatives or, if
// the model is trained on labels, labels. Otherwise, for mrr and hits@K it
// means kAll with kFull and 100 destinations per seed with kSampled, and for
// other metrics one pair per seed. Each evaluation uses the same negatives.
// mrr and hits@K rank the destinations; with kAll both ends.
class LinkEvaluator final : public Evaluator {
 public:
  struct Splits {
    std::optional<std::string> valid, test;
    // For kAll: edges that do not count as negatives.
    std::vector<const LinkTable*> known;
  };

  // Keeps references to `model`, `collectives` and `accelerator`, which the
  // model is on.
  // INVALID_ARGUMENT: negatives that do not suit the metric, the inference or
  // the job (says which do); kFull although most edges of a split are in the
  // graph. Fails like the source, which is asked for some edges.
  static absl::StatusOr<std::unique_ptr<LinkEvaluator>> Create(
      std::shared_ptr<BatchSource> source, const JobSpec& job, Model& model,
      Collectives& collectives, const Splits& splits,
      const EvaluationOptions& options,
      const Accelerator& accelerator = CpuAccelerator());

  absl::Status CheckMemory(bool predicts) const override;
  absl::StatusOr<SplitMetrics> Run() override;
  // Returns rows of the destinations' type.
  absl::StatusOr<at::Tensor> Predict(bool embeddings) override;

 private:
  LinkEvaluator(std::shared_ptr<BatchSource> source, const ResolvedJob& job,
                Model& model, Collectives& collectives, const Splits& splits,
                const EvaluationOptions& options,
                const Accelerator& accelerator);

  EvalNegatives ChooseNegatives(const std::string& split) const;
  Negatives ChooseDrawn(EvalNegatives negatives) const;
  absl::Status Check(const std::string& split) const;
  absl::Status CheckGiven(const std::string& split) const;
  // Checks that exact inference does not see the edges that it evaluates.
  absl::Status CheckUnseen(const std::string& split) const;
  // Returns the job that fetches the edges of a split and what they need.
  JobSpec MakeJob(const std::string& split, const Negatives& negatives) const;
  absl::StatusOr<std::optional<double>> Count(
      const std::optional<std::string>& split);
  absl::Status CountBatch(const Batch& batch, NegativeMode mode, bool among_all,
                          Metric& metric);
  // Checks that the rows of the ends, and with `scored` what their scores are
  // computed from, fit in the memory of the device.
  absl::Status CheckEnds(const LinkBatch& links, bool scored);
  // Returns rows on the model's device; `links` is on the CPU.
  absl::StatusOr<LinkEnds> ComputeEnds(const Batch& batch,
                                       const LinkBatch& links);
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
  SampledBatches batches_;
  MemoryCheck ends_;
  const KnownLinks known_;
  std::vector<at::Tensor> rows_;  // kFull, in Run(): per type, of all nodes
};

}  // namespace millrace
