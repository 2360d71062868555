// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/train/link/link_evaluator.h"
#include "client/train/link/link_table.h"
#include "client/train/objective.h"

namespace millrace {

// Learns which pairs of nodes are edges.
class LinkObjective final : public Objective {
 public:
  explicit LinkObjective(const Task& task) : task_(task) {}

  absl::StatusOr<GraphShape> Shape(const ResolvedJob& job,
                                   const Schema& schema) const override;
  std::string SeedsName(const ResolvedJob& job,
                        const Schema& schema) const override;
  absl::Status Check(const RunPlan& plan, const Schema& schema) const override;
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

 private:
  // The edges that the evaluation or the size of the model depends on.
  struct Tables {
    std::optional<LinkTable> train, listed, valid, test;
    std::vector<const LinkTable*> All() const;
  };
  absl::Status CheckNegatives(const RunPlan& plan,
                              const EdgeSplitInfo* split) const;
  // Whether the evaluation ranks edges against all nodes, so that it must know
  // all edges in order not to count them as negatives.
  bool NeedsKnownEdges(const EvaluationOptions& evaluation) const;
  absl::Status ReadTables(const std::shared_ptr<BatchSource>& source,
                          const RunPlan& plan);

  const Task task_;
  Tables tables_;  // set by Read(), moved by MakeEvaluator()
};

}  // namespace millrace
