// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/nn/model.h"
#include "client/train/device/memory_check.h"
#include "client/train/eval/inference.h"
#include "client/train/group/collectives.h"
#include "client/train/task/minibatch.h"
#include "client/train/task/task.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"

namespace millrace {

enum class InferenceKind { kFull, kSampled };

// The negatives that edges of valid and test are compared with.
enum class EvalNegatives {
  kDefault,  // see LinkEvaluator
  kGiven,    // the split's own
  kDrawn,    // drawn as EvaluationOptions::drawn says
  kAll,      // all nodes at either end, except known edges ("filtered")
};

struct EvaluationOptions {
  Task task;
  InferenceKind kind = InferenceKind::kFull;  // graph seeds need kSampled
  Fanouts fanouts;  // for kSampled; empty for the job's
  InferenceOptions inference;
  EvalNegatives negatives = EvalNegatives::kDefault;
  Negatives drawn;  // for kDrawn
};

// Returns the job of `trained` without what only training needs: all seeds in
// their order, the whole graph, and the options' fanouts.
JobSpec SampledJob(const JobSpec& trained, const EvaluationOptions& options);

// Checks a job for evaluation. Fails like ResolveJob(), but errors name the
// fields of evaluation instead of those of training.
absl::Status CheckEvaluationJob(const JobSpec& job, const Manifest& manifest);

// Returns options that divide the batches among the ranks that evaluate.
LoaderOptions SharedBatches(const InferenceOptions& inference,
                            const Collectives& collectives);

// Returns a check that batches of evaluation fit into an accelerator's memory.
MemoryCheck MakeEvaluationCheck(const Accelerator& accelerator);

// Makes the minibatches of sampled inference, after it has checked that they
// fit. Threads: one at a time.
class SampledBatches {
 public:
  // Keeps a reference to `accelerator`.
  explicit SampledBatches(const Accelerator& accelerator)
      : copies_(MakeEvaluationCheck(accelerator)),
        passes_(MakeEvaluationCheck(accelerator)) {}

  // Fails like MakeMinibatch. RESOURCE_EXHAUSTED: the minibatch, or what
  // `model` computes for it, does not fit in the accelerator's memory.
  absl::StatusOr<Minibatch> Make(const Batch& batch, const Model& model,
                                 const Task& task);

 private:
  MemoryCheck copies_, passes_;
};

// Returns an error of an evaluator, with a reason of evaluation if it has one
// of OutOfMemory() or OutOfDeviceMemory().
absl::Status OfEvaluation(const absl::Status& error);

// The task's metric over each split.
struct SplitMetrics {
  std::optional<double> train;  // only nodes with kFull, where it is free
  std::optional<double> valid;
  std::optional<double> test;
};

// Computes the metrics of a model as it is when Run() is called.
// Threads: one at a time; all ranks make the same calls and get the same
// numbers.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // RESOURCE_EXHAUSTED: what Run() or, with `predicts`, Predict() keeps for all
  // nodes does not fit in the memory that is available. Embeddings take no more
  // than Run(). Must be called once, before any rank of the host runs;
  // otherwise, memory that other ranks already hold is counted twice.
  virtual absl::Status CheckMemory(bool predicts) const = 0;

  // Fails like FullInference, SampledBatches, Loader and Collectives.
  virtual absl::StatusOr<SplitMetrics> Run() = 0;

  // Returns a row for every node of the seeds' type, kFloat in the order of
  // original ids, on every rank: the model's output, [n, outputs], or the input
  // of its last layer, [n, width]. Embeddings need node seeds and kFull; edge
  // seeds need kFull.
  virtual absl::StatusOr<at::Tensor> Predict(bool embeddings) = 0;
};

}  // namespace millrace
