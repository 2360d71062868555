// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/eval/evaluator.h"
#include "client/train/eval/inference.h"
#include "client/train/eval/metric.h"
#include "client/train/eval/seed_table.h"
#include "client/train/group/collectives.h"
#include "client/train/task/minibatch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Evaluates labels of nodes or graphs by exact or sampled inference.
class NodeEvaluator final : public Evaluator {
 public:
  struct Tables {
    std::optional<SeedTable> train, valid, test;
  };

  // Keeps references to `model`, `collectives` and `accelerator`, which the
  // model is on.
  NodeEvaluator(std::shared_ptr<BatchSource> source, const JobSpec& job,
                Model& model, Collectives& collectives, Tables tables,
                const EvaluationOptions& options,
                const Accelerator& accelerator = CpuAccelerator());

  absl::Status CheckMemory(bool predicts) const override;
  absl::StatusOr<SplitMetrics> Run() override;
  // `embeddings` needs a model of at least 2 layers.
  absl::StatusOr<at::Tensor> Predict(bool embeddings) override;

 private:
  absl::StatusOr<int64_t> SeedNodes() const;
  std::vector<const SeedTable*> CountedTables() const;
  absl::Status CountFull(const std::vector<const SeedTable*>& tables,
                         std::vector<Metric>& metrics);
  absl::Status CountSampled(const SeedTable& table, Metric& metric);
  absl::StatusOr<at::Tensor> PredictSampled();
  // Calls `use` with each of this rank's batches of `seeds`, as a Batch and as
  // a Minibatch, and its logits. Rank 0 shows progress of `what`.
  template <typename Use>
  absl::Status ForEachSampled(const std::string& what,
                              std::vector<int64_t> seeds, Use&& use);

  const std::shared_ptr<BatchSource> source_;  // shared with the trainer
  const JobSpec job_;
  Model& model_;
  Collectives& collectives_;
  const Tables tables_;
  const EvaluationOptions options_;
  FullInference full_;
  SampledBatches batches_;
};

}  // namespace millrace
