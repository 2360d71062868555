// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/graph_shape.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/eval/evaluator.h"
#include "client/train/group/collectives.h"
#include "client/train/run/training_order.h"
#include "client/train/run_plan.h"
#include "client/train/task/minibatch.h"
#include "client/train/task/task.h"
#include "common/graph/manifest.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// What a run reads before it makes its model.
struct RunInputs {
  ModelConfig model;                   // the plan's, with all sizes filled in
  std::optional<TrainingOrder> order;  // --order
};

// What a run learns from its seeds, and all that depends on it: what the graph
// must have, how large the model's output is, the loss and the evaluation.
// Call the methods in the order of their declaration.
// Threads: one at a time.
class Objective {
 public:
  virtual ~Objective() = default;

  // Returns the graph as a model for these seeds sees it. Fails like
  // GraphShape::OfGraphs.
  virtual absl::StatusOr<GraphShape> Shape(const ResolvedJob& job,
                                           const Schema& schema) const = 0;
  // Returns the name of the seeds' node type or relation.
  virtual std::string SeedsName(const ResolvedJob& job,
                                const Schema& schema) const = 0;
  // Checks that the evaluation, the prediction and the graph suit what is
  // learned. Of the plan, the members up to `shape` are set.
  virtual absl::Status Check(const RunPlan& plan,
                             const Schema& schema) const = 0;
  // Returns the number of seeds in the plan's split. NOT_FOUND: there is no
  // such split.
  virtual absl::StatusOr<int64_t> CountSeeds(
      const RunPlan& plan, const Manifest& manifest) const = 0;
  // Checks that the split, or the listed seeds, have what is learned.
  virtual absl::Status CheckSplit(const RunPlan& plan,
                                  const Manifest& manifest) const = 0;

  // Reads the splits as far as the model's outputs or the evaluation depend on
  // them. Fails like ReadSeedTable, ReadLinkTable, CountClasses and
  // ReadTrainingOrder. FAILED_PRECONDITION: no seed has a label.
  virtual absl::StatusOr<RunInputs> Read(std::shared_ptr<BatchSource> source,
                                         const RunPlan& plan) = 0;
  // Returns an evaluator for the splits that Read() found, which keeps
  // references to `model`, `collectives` and `accelerator`. Fails like
  // LinkEvaluator::Create.
  virtual absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(
      std::shared_ptr<BatchSource> source, const RunPlan& plan, Model& model,
      Collectives& collectives, const Accelerator& accelerator) = 0;

  // Runs a forward pass over a batch. Throws what LibTorch throws.
  virtual Outcome Forward(Model& model, const Minibatch& minibatch,
                          const Pass& pass) const = 0;
};

// `seeds` must be kEdge if and only if the task is kLink.
std::unique_ptr<Objective> MakeObjective(const Task& task, SeedKind seeds);

}  // namespace millrace
