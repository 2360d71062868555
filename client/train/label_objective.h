// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/train/eval/node_evaluator.h"
#include "client/train/objective.h"

namespace millrace {

// Learns the labels of nodes or graphs. (Graphs are nodes of a type of their
// own.)
class LabelObjective : public Objective {
 public:
  explicit LabelObjective(const Task& task) : task_(task) {}

  std::string SeedsName(const ResolvedJob& job,
                        const Schema& schema) const override;
  absl::StatusOr<int64_t> CountSeeds(const RunPlan& plan,
                                     const Manifest& manifest) const override;
  absl::Status CheckSplit(const RunPlan& plan,
                          const Manifest& manifest) const override;
  absl::StatusOr<RunInputs> Read(std::shared_ptr<BatchSource> source,
                                 const RunPlan& plan) override;
  absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(
      std::shared_ptr<BatchSource> source, const RunPlan& plan, Model& model,
      Collectives& collectives, const Accelerator& accelerator) override;
  Outcome Forward(Model& model, const Minibatch& minibatch,
                  const Pass& pass) const override;

 protected:
  // FAILED_PRECONDITION: a homogeneous graph without features, or seeds
  // without labels.
  static absl::Status CheckGraph(const RunPlan& plan, const Schema& schema);

 private:
  absl::Status ReadTables(std::shared_ptr<BatchSource> source,
                          const RunPlan& plan);
  absl::StatusOr<int64_t> CountOutputs(int64_t classes) const;
  absl::Status CheckLabels(const RunPlan& plan, int64_t outputs) const;

  const Task task_;
  NodeEvaluator::Tables tables_;  // set by Read(), moved by MakeEvaluator()
};

class NodeObjective final : public LabelObjective {
 public:
  using LabelObjective::LabelObjective;
  absl::StatusOr<GraphShape> Shape(const ResolvedJob& job,
                                   const Schema& schema) const override;
  absl::Status Check(const RunPlan& plan, const Schema& schema) const override;
};

class GraphObjective final : public LabelObjective {
 public:
  using LabelObjective::LabelObjective;
  absl::StatusOr<GraphShape> Shape(const ResolvedJob& job,
                                   const Schema& schema) const override;
  absl::Status Check(const RunPlan& plan, const Schema& schema) const override;
};

}  // namespace millrace
