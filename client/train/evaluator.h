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
#include "client/train/seed_table.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

enum class InferenceKind { kFull, kSampled };

struct EvaluationOptions {
  InferenceKind kind = InferenceKind::kFull;
  Fanouts fanouts;  // kSampled; empty: the job's
  InferenceOptions inference;
};

// The share of labelled seeds whose largest logit is their label.
struct Accuracy {
  std::optional<double> train;  // kFull alone: free there
  std::optional<double> valid;
  std::optional<double> test;
};

// Accuracy of the model as it is, by exact or by sampled inference.
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

  // Rows of all nodes in original id order, on every rank: logits, or the
  // input of the last layer.
  // UNIMPLEMENTED: embeddings by sampled inference or of a single layer.
  absl::StatusOr<at::Tensor> Predict(bool embeddings);

 private:
  struct Count {
    int64_t correct = 0;
    int64_t labelled = 0;
  };
  std::vector<const SeedTable*> CountedTables() const;
  absl::StatusOr<std::vector<Count>> CountFull(
      const std::vector<const SeedTable*>& tables);
  absl::StatusOr<Count> CountSampled(const SeedTable& table);
  absl::Status AddOverRanks(std::vector<Count>& counts);
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
