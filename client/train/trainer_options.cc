// SPDX-License-Identifier: Apache-2.0
// Whether the options of a Trainer fit each other and the graph: what would
// otherwise be found out only after the training.
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/seeds.h"

namespace millrace {

absl::Status CheckComplete(const TrainOptions& options) {
  if (!options.consumed_log.empty() && options.feature_dtype != DType::kNone) {
    return absl::InvalidArgumentError(
        StrCat("--consumed-log holds digests of features as they are stored, "
               "but --feature-dtype ",
               DTypeName(options.feature_dtype),
               " changes them on the way\nleave out one of the two"));
  }
  const bool needs_folder =
      options.keep_best || options.resume || options.checkpoint_every > 0;
  if (!options.checkpoint.empty() || !needs_folder) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--checkpoint DIR is needed by --checkpoint-every, --keep-best and "
      "--resume\nname the folder that checkpoints are in");
}

absl::Status Trainer::CheckOptions() {
  MILLRACE_RETURN_IF_ERROR(CheckComplete(options_));
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(options_.job, source_->manifest()));
  seed_type_ = job.seed_type;
  seed_relation_ = job.seed_relation;
  MILLRACE_RETURN_IF_ERROR(CheckEvaluation(job));
  MILLRACE_RETURN_IF_ERROR(CheckDepth(job));
  return options_.predict.empty() ? absl::OkStatus() : CheckPrediction();
}

absl::Status Trainer::CheckDepth(const ResolvedJob& job) const {
  if (job.spec.seed_kind == SeedKind::kGraph ||
      EdgesOfAllNodes(job.spec.method) || options_.model.kind == "embedding") {
    return absl::OkStatus();
  }
  const int layers = options_.model.layers;
  MILLRACE_RETURN_IF_ERROR(CheckLayers(layers, job.hops, "--fanouts"));
  const Fanouts& evaluated = options_.evaluation.fanouts;
  return evaluated.empty()
             ? absl::OkStatus()
             : CheckLayers(layers, static_cast<int>(evaluated.size()),
                           "--eval-fanouts");
}

absl::Status Trainer::CheckSeeds() const {
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(options_.job, source_->manifest()));
  if (options_.seeds.has_value()) {
    if (options_.seeds->size() == 0) {
      return absl::InvalidArgumentError(
          "--seeds-file has no seeds\ngive a file of at least one");
    }
    return CheckSeedList(job, *options_.seeds);
  }
  const Manifest& manifest = source_->manifest();
  const std::string& name = job.spec.split;
  int64_t count = 0;
  if (job.spec.seed_kind == SeedKind::kEdge) {
    MILLRACE_ASSIGN_OR_RETURN(const size_t place,
                              manifest.FindEdgeSplit(seed_relation_, name));
    count = manifest.edge_splits[place].count;
  } else {
    MILLRACE_ASSIGN_OR_RETURN(const size_t place,
                              manifest.FindSplit(seed_type_, name));
    count = manifest.splits[place].count;
  }
  if (count > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("split \"", name, "\" of ", SeedTypeName(),
             " has no seeds\nname another with --split, or make one with "
             "`millrace split`"));
}

absl::Status Trainer::CheckEvaluation(const ResolvedJob& job) const {
  const EvaluationOptions& evaluation = options_.evaluation;
  if (evaluation.kind == InferenceKind::kSampled) {
    MILLRACE_RETURN_IF_ERROR(CheckEvaluationJob(
        SampledJob(options_.job, evaluation), source_->manifest()));
    return CheckEvaluationTimes(job);
  }
  if (!evaluation.fanouts.empty()) {
    return absl::InvalidArgumentError(
        "--eval-fanouts is of --inference sampled, but --inference full reads "
        "all neighbours\nadd --inference sampled, or leave out "
        "--eval-fanouts");
  }
  if (job.spec.seed_kind == SeedKind::kGraph) {
    return absl::InvalidArgumentError(
        "--inference full goes through a graph layer by layer, but a batch of "
        "--seeds graph holds whole graphs\nleave out --inference");
  }
  if (job.spec.temporal != TemporalStrategy::kNone) {
    return absl::InvalidArgumentError(
        "--inference full reads all neighbours, also those later than a "
        "seed\nuse --inference sampled with --temporal");
  }
  return absl::OkStatus();
}

// Nodes of other splits are evaluated at their own times.
absl::Status Trainer::CheckEvaluationTimes(const ResolvedJob& job) const {
  const Manifest& manifest = source_->manifest();
  const NodeType& type = manifest.schema.node_types[seed_type_];
  if (job.spec.temporal == TemporalStrategy::kNone || type.has_time ||
      job.spec.seed_kind == SeedKind::kEdge) {
    return absl::OkStatus();
  }
  const auto evaluated = [&](const std::string& named, const char* usual) {
    return !named.empty() ||
           !absl::IsNotFound(manifest.FindSplit(seed_type_, usual).status());
  };
  const bool valid = evaluated(options_.valid_split, "valid");
  if (!valid && !evaluated(options_.test_split, "test") &&
      options_.predict.empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      StrCat("--temporal: evaluation and --predict take nodes at times of "
             "their own, but node type ",
             type.name,
             " has none\nimport the dataset with --node-times F.npy; without "
             "splits valid and test it can be trained on"));
}

absl::Status Trainer::CheckPrediction() const {
  const bool sampled = options_.evaluation.kind == InferenceKind::kSampled;
  if (learns_links()) {
    return sampled ? absl::UnimplementedError(
                         "--predict of --task link needs --inference full\n"
                         "use it, or leave out --predict")
                   : absl::OkStatus();
  }
  if (!options_.predict_embeddings) return absl::OkStatus();
  if (options_.job.seed_kind == SeedKind::kGraph) {
    return absl::UnimplementedError(
        "--output embeddings are rows of nodes, not of graphs\nuse --output "
        "logits");
  }
  if (sampled) {
    return absl::UnimplementedError(
        "--output embeddings needs --inference full\nuse it, or --output "
        "logits");
  }
  if (options_.model.layers > 1) return absl::OkStatus();
  return absl::UnimplementedError(
      StrCat("--output embeddings are what the last of at least 2 layers "
             "reads, but --layers is ",
             options_.model.layers, "\nuse --output logits"));
}

}  // namespace millrace
