// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_plan.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "client/nn/model_kind.h"
#include "client/train/objective.h"
#include "client/train/run/train_check.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/resolve_seeds.h"
#include "common/sample/seeds/used_splits.h"

namespace millrace {
namespace {

absl::Status CheckTask(const TrainOptions& options) {
  const bool links = options.task.kind == TaskKind::kLink;
  if (links == (options.job.seed_kind == SeedKind::kEdge)) {
    return absl::OkStatus();
  }
  FieldError error = {.problem = FieldError::Problem::kNeeds,
                      .field = "task",
                      .value = "link",
                      .other_field = "seed_kind",
                      .other_value = "edge"};
  if (!links) {
    std::swap(error.field, error.other_field);
    std::swap(error.value, error.other_value);
  }
  return InvalidField(error);
}

// Evaluation samples each node at its own time, so nodes must have times.
absl::Status CheckEvaluationTimes(const TrainOptions& options,
                                  const ResolvedJob& job,
                                  const Manifest& manifest) {
  const NodeType& type = manifest.schema.node_types[job.seed_type];
  if (job.spec.temporal == TemporalStrategy::kNone || type.has_time ||
      job.spec.seed_kind == SeedKind::kEdge) {
    return absl::OkStatus();
  }
  const auto evaluated = [&](const std::string& named, const char* usual) {
    return !named.empty() ||
           !absl::IsNotFound(manifest.FindSplit(job.seed_type, usual).status());
  };
  const bool valid = evaluated(options.valid_split, kValidSplit);
  if (!valid && !evaluated(options.test_split, kTestSplit) &&
      options.predict.empty()) {
    return absl::OkStatus();
  }
  return FieldStatus(
      absl::StatusCode::kFailedPrecondition,
      {.field = "temporal",
       .limit = StrCat("evaluation and prediction sample each node at its own "
                       "time, but node type ",
                       type.name, " has no times")},
      Reason{"nodes_without_times"});
}

absl::Status CheckEvaluation(const TrainOptions& options,
                             const ResolvedJob& job, const Manifest& manifest) {
  const EvaluationOptions& evaluation = options.evaluation;
  if (evaluation.kind == InferenceKind::kSampled) {
    MILLRACE_RETURN_IF_ERROR(
        CheckEvaluationJob(SampledJob(options.job, evaluation), manifest));
    return CheckEvaluationTimes(options, job, manifest);
  }
  if (!evaluation.fanouts.empty()) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = "eval_fanouts",
                         .other_field = "inference",
                         .other_value = "sampled"});
  }
  if (job.spec.temporal != TemporalStrategy::kNone) {
    return InvalidField(
        {.field = "inference",
         .value = "full",
         .limit = "reads all neighbours, including those later than a seed"},
        Reason{"full_inference_in_time"});
  }
  if (options.model.kind == ModelKind::kScript) {
    return FieldStatus(
        absl::StatusCode::kUnimplemented,
        {.field = "inference",
         .value = "full",
         .limit =
             "runs a model layer by layer, which a script does not support"},
        Reason{"full_inference_of_script"});
  }
  return absl::OkStatus();
}

absl::Status CheckDepth(const TrainOptions& options, const ResolvedJob& job) {
  if (job.spec.seed_kind == SeedKind::kGraph ||
      EdgesOfAllNodes(job.spec.method) ||
      options.model.kind == ModelKind::kEmbedding) {
    return absl::OkStatus();
  }
  const int layers = options.model.layers;
  MILLRACE_RETURN_IF_ERROR(CheckLayers(layers, job.hops, "fanouts"));
  const Fanouts& evaluated = options.evaluation.fanouts;
  return evaluated.empty()
             ? absl::OkStatus()
             : CheckLayers(layers, static_cast<int>(evaluated.size()),
                           "eval_fanouts");
}

absl::Status CheckRelationTypes(const ModelConfig& model,
                                const GraphShape& shape, const Schema& schema) {
  const bool typed =
      std::any_of(schema.relations.begin(), schema.relations.end(),
                  [](const Relation& relation) { return relation.has_type; });
  const ModelKindInfo& info = InfoOf(model.kind);
  if (!info.relational || !typed || !shape.homogeneous()) {
    return absl::OkStatus();
  }
  return FieldStatus(absl::StatusCode::kUnimplemented,
                     {.field = "model",
                      .value = std::string(info.name),
                      .limit = "distinguishes relations, not types of edges "
                               "within a relation"},
                     Reason{"edge_types_unread"});
}

absl::Status CheckSeeds(const RunPlan& plan, const Objective& objective,
                        const ResolvedJob& job, const Manifest& manifest) {
  const std::optional<ExplicitSeeds>& listed = plan.options.seeds;
  if (listed.has_value()) {
    if (listed->size() > 0) return CheckExplicitSeeds(job, *listed);
    return WithAdvice(InvalidField({.field = "seeds", .limit = "has no seeds"}),
                      "give at least one");
  }
  MILLRACE_ASSIGN_OR_RETURN(const int64_t count,
                            objective.CountSeeds(plan, manifest));
  if (count > 0) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(StrCat("split \"", job.spec.split, "\" of ",
                                           plan.seeds_name, " has no seeds")),
      Reason{"empty_split"});
}

absl::Status CheckOrder(const TrainOptions& options) {
  if (options.order.empty() || options.seeds.has_value() ||
      options.job.temporal == TemporalStrategy::kNone) {
    return absl::OkStatus();
  }
  return InvalidField({.field = "order",
                       .limit = "a temporal job needs the times of the seeds"},
                      Reason{"order_without_times"});
}

uint64_t ChecksumOf(const ExplicitSeeds& seeds) {
  uint64_t checksum = 0;
  const auto add = [&checksum](const void* data, uint64_t bytes) {
    // The length too, so that values cannot move to the next column unnoticed.
    checksum = XXH3_64bits_withSeed(&bytes, sizeof(bytes), checksum);
    checksum = XXH3_64bits_withSeed(data, bytes, checksum);
  };
  for (const auto* column :
       {&seeds.ids, &seeds.times, &seeds.dst, &seeds.negatives}) {
    add(column->data(), column->size() * sizeof(int64_t));
  }
  add(seeds.edge_types.data(), seeds.edge_types.size() * sizeof(int32_t));
  add(seeds.labels.data(), seeds.labels.total_bytes());
  return checksum;
}

// Returns the fingerprints of the splits that the run trains on or evaluates,
// without splits that do not exist or whose seeds are listed.
RunIdentity IdentifySplits(const TrainOptions& options, const ResolvedJob& job,
                           const Manifest& manifest) {
  ResolvedJob used;
  used.spec = options.job;
  used.seed_type = job.seed_type;
  used.seed_relation = job.seed_relation;
  RunIdentity texts;
  const auto add = [&](bool explicit_seeds) {
    for (const UsedSplit& split : SplitsOfJob(used, manifest, explicit_seeds)) {
      texts[StrCat(kSplitPrefix, split.name, " of ", split.type)] =
          split.fingerprint;
    }
  };
  add(options.seeds.has_value());
  used.spec.split = EvaluatedSplit(options.valid_split, kValidSplit);
  add(/*explicit_seeds=*/false);
  used.spec.split = EvaluatedSplit(options.test_split, kTestSplit);
  add(/*explicit_seeds=*/false);
  return texts;
}

// Fills in what the graph says about a run whose options have been checked.
void Complete(const ResolvedJob& job, const Manifest& manifest, RunPlan& plan) {
  TrainOptions& options = plan.options;
  plan.splits = IdentifySplits(options, job, manifest);
  // Batches are the same for all partitionings of a dataset, unless seeds are
  // taken partition by partition.
  plan.dataset = options.job.seed_order == SeedOrder::kLocal
                     ? manifest.fingerprint
                     : manifest.dataset_fingerprint;
  if (options.seeds.has_value()) {
    plan.seeds_checksum = ChecksumOf(*options.seeds);
  }
  options.model.in = plan.shape.types[plan.shape.seed_type].features;
  options.evaluation.task = options.task;
  options.evaluation.inference.ranks_on_host = options.ranks_on_host;
  if (!options.order.empty()) options.job.shuffle = false;
}

}  // namespace

absl::StatusOr<RunPlan> MakeRunPlan(TrainOptions options,
                                    const Manifest& manifest) {
  RunPlan plan;
  plan.options = std::move(options);
  const TrainOptions& given = plan.options;
  MILLRACE_RETURN_IF_ERROR(CheckComplete(given));
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(given.job, manifest));
  MILLRACE_RETURN_IF_ERROR(CheckTask(given));
  const std::unique_ptr<Objective> objective =
      MakeObjective(given.task, given.job.seed_kind);
  plan.seed_type = job.seed_type;
  plan.seed_relation = job.seed_relation;
  plan.seeds_name = objective->SeedsName(job, manifest.schema);
  MILLRACE_RETURN_IF_ERROR(CheckEvaluation(given, job, manifest));
  MILLRACE_RETURN_IF_ERROR(CheckDepth(given, job));
  MILLRACE_ASSIGN_OR_RETURN(plan.shape, objective->Shape(job, manifest.schema));
  MILLRACE_RETURN_IF_ERROR(objective->Check(plan, manifest.schema));
  MILLRACE_RETURN_IF_ERROR(
      CheckRelationTypes(given.model, plan.shape, manifest.schema));
  MILLRACE_RETURN_IF_ERROR(CheckSeeds(plan, *objective, job, manifest));
  MILLRACE_RETURN_IF_ERROR(objective->CheckSplit(plan, manifest));
  MILLRACE_RETURN_IF_ERROR(CheckOrder(given));
  MILLRACE_ASSIGN_OR_RETURN(
      plan.learning_rate,
      LearningRate::Parse(given.lr_schedule, given.optimizer.lr, given.epochs));
  Complete(job, manifest, plan);
  return plan;
}

}  // namespace millrace
