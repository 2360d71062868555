// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/collectives.h"
#include "client/train/inference.h"
#include "client/train/metric.h"
#include "client/train/seed_table.h"
#include "client/train/task.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

enum class InferenceKind { kFull, kSampled };

struct EvaluationOptions {
  Task task;
  InferenceKind kind = InferenceKind::kFull;
  Fanouts fanouts;  // kSampled; empty: the job's
  InferenceOptions inference;
};

// The task's metric over each split.
struct Accuracy {
  std::optional<double> train;  // kFull alone: free there
  std::optional<double> valid;
  std::optional<double> test;
};

// The metric of the model as it is, by exact or by sampled inference.
// Threads: one at a time; all ranks run together and get the same numbers.
class Evaluator {
 public:
  struct Tables {
    std::optional<SeedTable> train, valid, test;
  };

  // Keeps references to `model` and `collectives`.
  Evaluator(std::shared_ptr<BatchSource> source, const JobSpec& job,
            Model& model, Collectives& collectives, Tables tables,
            const EvaluationOptions& options);

  // Errors of FullInference, Loader and Collectives.
  absl::StatusOr<Accuracy> Run();

  // Rows of all nodes of the seeds' type in original id order, on every rank:
  // logits, or the input of the last layer.
  // UNIMPLEMENTED: embeddings by sampled inference or of a single layer.
  absl::StatusOr<at::Tensor> Predict(bool embeddings);

 private:
  std::vector<const SeedTable*> CountedTables() const;
  absl::Status CountFull(const std::vector<const SeedTable*>& tables,
                         std::vector<Metric>& metrics);
  absl::Status CountSampled(const SeedTable& table, Metric& metric);
  absl::StatusOr<at::Tensor> PredictSampled();
  // This rank's logits of seeds and of which, batch by batch.
  template <typename Use>
  absl::Status ForEachSampled(std::vector<int64_t> seeds, Use&& use);

  const std::shared_ptr<BatchSource> source_;  // shared with the trainer
  const JobSpec job_;
  Model& model_;
  Collectives& collectives_;
  const Tables tables_;
  const EvaluationOptions options_;
  FullInference full_;
};

}  // namespace millrace
