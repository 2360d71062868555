// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/train/eval/inference.h"
#include "client/train/group/collectives.h"
#include "client/train/task/task.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"

namespace millrace {

enum class InferenceKind { kFull, kSampled };

// What edges of valid and test are compared with.
enum class EvalNegatives {
  kDefault,  // see LinkEvaluator
  kGiven,    // the split's own
  kDrawn,    // as the job's are drawn
  kAll,      // all nodes at either end, less known edges ("filtered")
};

struct EvaluationOptions {
  Task task;
  InferenceKind kind = InferenceKind::kFull;  // of graphs: kSampled
  Fanouts fanouts;                            // kSampled; empty: the job's
  InferenceOptions inference;
  EvalNegatives negatives = EvalNegatives::kDefault;
  Negatives drawn;  // kDrawn
};

// The job of `trained` without what only training does: all seeds in their
// order, in the whole graph, with the options' fanouts.
JobSpec SampledJob(const JobSpec& trained, const EvaluationOptions& options);

// Errors of ResolveJob for a job that evaluates, naming the options of
// evaluation.
absl::Status CheckEvaluationJob(const JobSpec& job, const Manifest& manifest);

// For batches that the ranks that evaluate share.
LoaderOptions SharedBatches(const InferenceOptions& inference,
                            const Collectives& collectives);

// The task's metric over each split.
struct Accuracy {
  std::optional<double> train;  // nodes by kFull alone: free there
  std::optional<double> valid;
  std::optional<double> test;
};

// The metric of the model as it is.
// Threads: one at a time; all ranks run together and get the same numbers.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // RESOURCE_EXHAUSTED: what Run(), or with `predicts` Predict(), keeps of all
  // nodes does not fit in the memory that is available. Embeddings take no more
  // than Run(). Called once, before any rank of the host runs: what others hold
  // already would count twice.
  virtual absl::Status CheckMemory(bool predicts) const = 0;

  // Errors of FullInference, Loader and Collectives.
  virtual absl::StatusOr<Accuracy> Run() = 0;

  // Rows of all nodes of the seeds' type in original id order, on every rank:
  // what the model computes, or the input of its last layer, by exact
  // inference of nodes alone. Of edges by exact inference alone.
  virtual absl::StatusOr<at::Tensor> Predict(bool embeddings) = 0;
};

}  // namespace millrace
