// SPDX-License-Identifier: Apache-2.0
#include "client/train/label_objective.h"

#include <ATen/ops/full.h>

#include <optional>
#include <utility>
#include <vector>

#include "client/tensor/torch_status.h"
#include "client/train/eval/class_count.h"
#include "client/train/eval/seed_table.h"
#include "client/train/task/labels.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr Reason kNoEmbeddings = {"no_embeddings"};

absl::StatusOr<TrainingOrder> ReadOrder(const TrainOptions& options,
                                        const SeedTable& train) {
  ExplicitSeeds seeds;
  if (options.seeds.has_value()) {
    seeds = *options.seeds;
  } else {
    const int64_t* ids = train.original_id.const_data_ptr<int64_t>();
    seeds.ids.assign(ids, ids + train.size());
  }
  return ReadTrainingOrder(options.order, seeds, options.epochs);
}

}  // namespace

std::string LabelObjective::SeedsName(const ResolvedJob& job,
                                      const Schema& schema) const {
  return schema.node_types[job.seed_type].name;
}

absl::StatusOr<int64_t> LabelObjective::CountSeeds(
    const RunPlan& plan, const Manifest& manifest) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t place,
      manifest.FindSplit(plan.seed_type, plan.options.job.split));
  return manifest.splits[place].count;
}

absl::Status LabelObjective::CheckGraph(const RunPlan& plan,
                                        const Schema& schema) {
  const GraphShape& shape = plan.shape;
  if (shape.homogeneous() && shape.types[0].features == 0) {
    return WithReason(
        absl::FailedPreconditionError(
            StrCat("node type \"", shape.types[0].name, "\" has no features")),
        Reason{"no_features"});
  }
  const NodeType& type = schema.node_types[plan.seed_type];
  if (type.label.present()) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(
                        StrCat("node type \"", type.name, "\" has no labels")),
                    Reason{"no_labels"});
}

// Whether the seeds have labels is known only after they have been read.
absl::Status LabelObjective::CheckSplit(const RunPlan&, const Manifest&) const {
  return absl::OkStatus();
}

absl::Status LabelObjective::ReadTables(std::shared_ptr<BatchSource> source,
                                        const RunPlan& plan) {
  const TrainOptions& options = plan.options;
  MILLRACE_ASSIGN_OR_RETURN(tables_.train,
                            ReadSeedTable(source, options.job, task_.kind,
                                          options.job.split, options.seeds));
  const auto read_other = [&](const std::string& named, const char* usual,
                              std::optional<SeedTable>& table) -> absl::Status {
    const std::string split = EvaluatedSplit(named, usual);
    if (named.empty() &&
        absl::IsNotFound(
            source->manifest().FindSplit(plan.seed_type, split).status())) {
      return absl::OkStatus();
    }
    MILLRACE_ASSIGN_OR_RETURN(
        table, ReadSeedTable(source, options.job, task_.kind, split));
    return absl::OkStatus();
  };
  MILLRACE_RETURN_IF_ERROR(
      read_other(options.valid_split, kValidSplit, tables_.valid));
  return read_other(options.test_split, kTestSplit, tables_.test);
}

// Returns the number of outputs that a model needs: one per class, or one per
// column of the labels; 0 if nothing is labelled.
absl::StatusOr<int64_t> LabelObjective::CountOutputs(int64_t classes) const {
  std::vector<const SeedTable*> present;
  for (const auto* table : {&tables_.train, &tables_.valid, &tables_.test}) {
    if (table->has_value() && (*table)->size() > 0) present.push_back(&**table);
  }
  return CatchTorch("counting classes", [&]() -> absl::StatusOr<int64_t> {
    if (task_.kind == TaskKind::kSingle) return CountClasses(present, classes);
    return present.empty() ? 0 : present[0]->label.size(1);
  });
}

absl::Status LabelObjective::CheckLabels(const RunPlan& plan,
                                         int64_t outputs) const {
  // Without epochs, the labels only determine the number of outputs.
  const bool unused = plan.options.epochs == 0 && outputs > 0;
  const SeedTable& train = *tables_.train;
  if (unused || CountLabelled(train.label) > 0) return absl::OkStatus();
  const std::string unlabelled =
      StrCat("has ", train.size(), " seeds, but none of them has a label");
  if (plan.options.seeds.has_value()) {
    return WithAdvice(InvalidField({.field = "seeds", .limit = unlabelled}),
                      "give seeds with labels");
  }
  return WithReason(
      absl::FailedPreconditionError(StrCat("split \"", train.split, "\" of ",
                                           plan.seeds_name, " ", unlabelled)),
      Reason{"unlabelled_split"});
}

absl::StatusOr<RunInputs> LabelObjective::Read(
    std::shared_ptr<BatchSource> source, const RunPlan& plan) {
  const TrainOptions& options = plan.options;
  RunInputs inputs;
  inputs.model = options.model;
  MILLRACE_RETURN_IF_ERROR(ReadTables(std::move(source), plan));
  if (!options.order.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(inputs.order, ReadOrder(options, *tables_.train));
  }
  MILLRACE_ASSIGN_OR_RETURN(inputs.model.out, CountOutputs(options.classes));
  MILLRACE_RETURN_IF_ERROR(CheckLabels(plan, inputs.model.out));
  MILLRACE_RETURN_IF_ERROR(task_.CheckOutputs(inputs.model.out));
  return inputs;
}

absl::StatusOr<std::unique_ptr<Evaluator>> LabelObjective::MakeEvaluator(
    std::shared_ptr<BatchSource> source, const RunPlan& plan, Model& model,
    Collectives& collectives, const Accelerator& accelerator) {
  return std::make_unique<NodeEvaluator>(std::move(source), plan.options.job,
                                         model, collectives, std::move(tables_),
                                         plan.options.evaluation, accelerator);
}

Outcome LabelObjective::Forward(Model& model, const Minibatch& minibatch,
                                const Pass& pass) const {
  const at::Tensor logits =
      minibatch.OfSeeds(model.Forward(minibatch.graph, pass));
  return {LossSum(task_.kind, logits, minibatch.labels),
          at::full({}, minibatch.labelled, logits.options().dtype(at::kLong)),
          CountCorrect(task_.kind, logits, minibatch.labels)};
}

absl::StatusOr<GraphShape> NodeObjective::Shape(const ResolvedJob& job,
                                                const Schema& schema) const {
  return GraphShape::Of(schema, job.seed_type, job.spec.direction);
}

absl::Status NodeObjective::Check(const RunPlan& plan,
                                  const Schema& schema) const {
  const TrainOptions& options = plan.options;
  if (!options.predict.empty() && options.predict_embeddings) {
    if (options.evaluation.kind == InferenceKind::kSampled) {
      return FieldStatus(absl::StatusCode::kUnimplemented,
                         {.problem = FieldError::Problem::kNeeds,
                          .field = "predict_embeddings",
                          .other_field = "inference",
                          .other_value = "full"});
    }
    if (options.model.layers <= 1) {
      return FieldStatus(
          absl::StatusCode::kUnimplemented,
          {.field = "predict_embeddings",
           .limit = StrCat("embeddings are the input of the last layer of at "
                           "least 2, but layers is ",
                           options.model.layers)},
          kNoEmbeddings);
    }
  }
  return CheckGraph(plan, schema);
}

absl::StatusOr<GraphShape> GraphObjective::Shape(const ResolvedJob& job,
                                                 const Schema& schema) const {
  return GraphShape::OfGraphs(schema, job.seed_type);
}

absl::Status GraphObjective::Check(const RunPlan& plan,
                                   const Schema& schema) const {
  const TrainOptions& options = plan.options;
  if (options.evaluation.kind == InferenceKind::kFull) {
    return WithAdvice(
        InvalidField({.field = "inference",
                      .value = "full",
                      .limit = "goes through a graph layer by layer, but a "
                               "batch of graph seeds holds whole graphs"}),
        "leave it out");
  }
  if (!options.predict.empty() && options.predict_embeddings) {
    return FieldStatus(absl::StatusCode::kUnimplemented,
                       {.field = "predict_embeddings",
                        .limit = "they are rows of nodes, not of graphs"},
                       kNoEmbeddings);
  }
  return CheckGraph(plan, schema);
}

}  // namespace millrace
