// SPDX-License-Identifier: Apache-2.0
#include "client/train/link_objective.h"

#include <algorithm>
#include <utility>

#include "client/train/link/link_scores.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Whether the edges have types that the decoder distinguishes.
bool TypesEdges(const RunPlan& plan, const Schema& schema) {
  return schema.relations[plan.seed_relation].has_type &&
         plan.options.model.decoder == DecoderKind::kDistMult;
}

LinkEvaluator::Splits EvaluatedSplits(const RunPlan& plan,
                                      const Manifest& manifest) {
  const auto name = [&](const std::string& named,
                        const char* usual) -> std::optional<std::string> {
    std::string split = EvaluatedSplit(named, usual);
    if (named.empty() &&
        manifest.EdgeSplit(plan.seed_relation, split) == nullptr) {
      return std::nullopt;
    }
    return split;
  };
  return {name(plan.options.valid_split, kValidSplit),
          name(plan.options.test_split, kTestSplit),
          {}};
}

}  // namespace

std::vector<const LinkTable*> LinkObjective::Tables::All() const {
  std::vector<const LinkTable*> all;
  for (const auto* table : {&train, &listed, &valid, &test}) {
    if (table->has_value()) all.push_back(&**table);
  }
  return all;
}

absl::StatusOr<GraphShape> LinkObjective::Shape(const ResolvedJob& job,
                                                const Schema& schema) const {
  return GraphShape::OfEdges(schema, job.seed_relation, job.spec.direction);
}

std::string LinkObjective::SeedsName(const ResolvedJob& job,
                                     const Schema& schema) const {
  return schema.RelationName(job.seed_relation);
}

absl::Status LinkObjective::Check(const RunPlan& plan, const Schema&) const {
  if (plan.options.predict.empty() ||
      plan.options.evaluation.kind == InferenceKind::kFull) {
    return absl::OkStatus();
  }
  return FieldStatus(absl::StatusCode::kUnimplemented,
                     {.problem = FieldError::Problem::kNeeds,
                      .field = "predict",
                      .other_field = "inference",
                      .other_value = "full"});
}

absl::StatusOr<int64_t> LinkObjective::CountSeeds(
    const RunPlan& plan, const Manifest& manifest) const {
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t place,
      manifest.FindEdgeSplit(plan.seed_relation, plan.options.job.split));
  return manifest.edge_splits[place].count;
}

absl::Status LinkObjective::CheckSplit(const RunPlan& plan,
                                       const Manifest& manifest) const {
  const TrainOptions& options = plan.options;
  if (options.model.decoder == DecoderKind::kNone) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = "task",
                         .value = "link",
                         .other_field = "decoder"});
  }
  if (!options.order.empty()) {
    return FieldStatus(
        absl::StatusCode::kUnimplemented,
        {.field = "order", .limit = "it names nodes and graphs, not edges"},
        Reason{"order_of_edges"});
  }
  const bool listed = options.seeds.has_value();
  if (listed && TypesEdges(plan, manifest.schema)) {
    return InvalidField({.field = "seeds",
                         .limit = "they have no edge types, which the decoder "
                                  "distmult needs here"},
                        Reason{"seeds_without_edge_types"});
  }
  return CheckNegatives(
      plan, listed ? nullptr
                   : manifest.EdgeSplit(plan.seed_relation, options.job.split));
}

// `split` is null if the seeds are listed.
absl::Status LinkObjective::CheckNegatives(const RunPlan& plan,
                                           const EdgeSplitInfo* split) const {
  const std::string& name = plan.options.job.split;
  const bool given = split != nullptr && split->negatives > 0;
  const bool labels = split != nullptr && split->label.present();
  const bool none = task_.negatives == NegativeMode::kNone;
  if (labels && !none) {
    return InvalidField(
        {.field = "negatives",
         .limit = StrCat("it adds pairs that are not edges, but the labels of "
                         "split ",
                         name, " already name those")},
        Reason{"labels_name_negatives"});
  }
  if (labels && given) {
    return WithReason(
        absl::FailedPreconditionError(
            StrCat("split ", name,
                   " has both negatives and labels, which say which pairs are "
                   "edges")),
        Reason{"labels_and_negatives"});
  }
  if (task_.loss == LinkLoss::kSoftmax &&
      (task_.negatives == NegativeMode::kBinary || (none && !given))) {
    return InvalidField({.field = "loss",
                         .value = "softmax",
                         .limit = "compares an edge with negatives of its own"},
                        Reason{"loss_without_negatives"});
  }
  if (!none || given || labels) return absl::OkStatus();
  return InvalidField(
      {.field = "task",
       .value = "link",
       .limit = StrCat(
           "also needs pairs that are not edges, but none are to be "
           "drawn, and ",
           plan.options.seeds.has_value() ? "the listed seeds have"
                                          : StrCat("split ", name, " has"),
           " neither negatives nor labels")},
      Reason{"no_negatives"});
}

bool LinkObjective::NeedsKnownEdges(const EvaluationOptions& evaluation) const {
  return task_.ranks() && evaluation.kind == InferenceKind::kFull &&
         (evaluation.negatives == EvalNegatives::kDefault ||
          evaluation.negatives == EvalNegatives::kAll);
}

absl::Status LinkObjective::ReadTables(
    const std::shared_ptr<BatchSource>& source, const RunPlan& plan) {
  const JobSpec& job = plan.options.job;
  const Manifest& manifest = source->manifest();
  if (manifest.EdgeSplit(plan.seed_relation, job.split) != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(tables_.train,
                              ReadLinkTable(source, job, job.split));
  }
  if (plan.options.seeds.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(
        tables_.listed,
        ReadLinkTable(source, job, job.split, plan.options.seeds));
  }
  const LinkEvaluator::Splits splits = EvaluatedSplits(plan, manifest);
  if (splits.valid.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(tables_.valid,
                              ReadLinkTable(source, job, *splits.valid));
  }
  if (splits.test.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(tables_.test,
                              ReadLinkTable(source, job, *splits.test));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunInputs> LinkObjective::Read(
    std::shared_ptr<BatchSource> source, const RunPlan& plan) {
  if (TypesEdges(plan, source->manifest().schema) ||
      NeedsKnownEdges(plan.options.evaluation)) {
    MILLRACE_RETURN_IF_ERROR(ReadTables(source, plan));
  }
  RunInputs inputs;
  inputs.model = plan.options.model;
  for (const LinkTable* table : tables_.All()) {
    inputs.model.edge_types =
        std::max(inputs.model.edge_types, table->edge_types());
  }
  inputs.model.out = inputs.model.hidden;
  return inputs;
}

absl::StatusOr<std::unique_ptr<Evaluator>> LinkObjective::MakeEvaluator(
    std::shared_ptr<BatchSource> source, const RunPlan& plan, Model& model,
    Collectives& collectives, const Accelerator& accelerator) {
  const EvaluationOptions& evaluation = plan.options.evaluation;
  LinkEvaluator::Splits splits = EvaluatedSplits(plan, source->manifest());
  const Tables tables = std::exchange(tables_, {});
  if (NeedsKnownEdges(evaluation)) splits.known = tables.All();
  return LinkEvaluator::Create(std::move(source), plan.options.job, model,
                               collectives, splits, evaluation, accelerator);
}

Outcome LinkObjective::Forward(Model& model, const Minibatch& minibatch,
                               const Pass& pass) const {
  const GraphShape& shape = model.shape();
  const std::vector<at::Tensor> rows =
      model.ForwardTypes(minibatch.graph, pass);
  return LinkOutcome(task_.loss, *model.decoder(), *minibatch.links,
                     TakeEnds(minibatch.links->row, rows[*shape.source_type],
                              rows[shape.seed_type]),
                     /*one_type=*/shape.source_type == shape.seed_type);
}

}  // namespace millrace
