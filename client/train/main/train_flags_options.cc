// SPDX-License-Identifier: Apache-2.0
// Turns the options of millrace-train into TrainOptions.
#include <algorithm>
#include <utility>
#include <vector>

#include "client/nn/model_kind.h"
#include "client/train/main/train_flags.h"
#include "client/train/run/train_check.h"
#include "client/train/run/train_options.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/job_texts.h"

namespace millrace {
namespace {

// The error for a value that later versions may support.
absl::Status Later(const char* option, const std::string& value,
                   const char* served) {
  return UnservedError(StrCat(option, " ", value,
                              " does not exist in this version\nuse ", option,
                              " ", served));
}

// Counts hops as ResolveJob does once the graph is known.
int Hops(const JobSpec& job) {
  size_t hops = job.fanouts.size();
  for (const auto& [relation, fanouts] : job.relation_fanouts) {
    hops = std::max(hops, fanouts.size());
  }
  return static_cast<int>(hops);
}

Aggregation AggregationOf(const std::string& word) {
  if (word == "sum") return Aggregation::kSum;
  return word == "max" ? Aggregation::kMax : Aggregation::kMean;
}

}  // namespace

absl::Status TrainFlags::CheckServed() const {
  if (device_ != "cpu") return Later("--device", device_, "cpu");
  if (backend_ != "gloo") return Later("--backend", backend_, "gloo");
  return absl::OkStatus();
}

bool TrainFlags::scripted() const { return model_.starts_with(kScript); }

absl::Status TrainFlags::FillScript(ModelConfig& model) const {
  model.kind = ModelKind::kScript;
  model.script = model_.substr(kScript.size());
  for (const char* option :
       {"--hidden", "--heads", "--aggr", "--num-bases", "--dropout", "--norm",
        "--gcn-norm", "--gin-mlp", "--graph-head"}) {
    if (app_->count(option) == 0) continue;
    return UsageError(
        StrCat(option,
               " does not change a model that is a script\nleave it "
               "out, and script the model as you want it"));
  }
  return absl::OkStatus();
}

absl::Status TrainFlags::FillModel(TrainOptions& options) const {
  if (scripted()) {
    MILLRACE_RETURN_IF_ERROR(FillScript(options.model));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(options.model.kind, ModelKindFromName(model_));
  }
  options.model.hidden = hidden_;
  const bool embedding = options.model.kind == ModelKind::kEmbedding;
  if (embedding) {
    if (options.task.kind != TaskKind::kLink) {
      return UsageError(
          StrCat("--model embedding is for --task link, not for --task ", task_,
                 "\nuse another --model"));
    }
    if (Hops(options.job) > 0) {
      return UsageError(
          "--model embedding reads no neighbours\nleave out --fanouts");
    }
    options.job.fanouts = {0};
  }
  const int hops = Hops(options.job);
  const bool any_depth = options.job.seed_kind == SeedKind::kGraph ||
                         EdgesOfAllNodes(options.job.method);
  if (hops == 0 && any_depth && layers_ == 0) {
    return UsageError(
        "--layers is needed to train on walks or graphs\ngive e.g. --layers "
        "2");
  }
  if (hops == 0 && !any_depth) {
    return UsageError(
        "--fanouts is needed to train, one number per layer\ngive e.g. "
        "--fanouts 15,10 for two layers");
  }
  options.model.layers = layers_ > 0 || embedding ? layers_ : hops;
  options.model.heads = heads_;
  options.model.bases = bases_;
  options.model.aggregation = AggregationOf(aggregation_);
  options.model.dropout = dropout_;
  options.model.norm = norm_ == "batch"   ? NormKind::kBatch
                       : norm_ == "layer" ? NormKind::kLayer
                                          : NormKind::kNone;
  options.model.gcn_norm =
      gcn_norm_ == "full" ? GcnNorm::kFull : GcnNorm::kSampled;
  options.model.seed = model_seed_;
  options.model.gin_mlp = gin_mlp_;
  if (options.task.kind == TaskKind::kLink) {
    options.model.decoder =
        decoder_ == "dot" ? DecoderKind::kDot : DecoderKind::kDistMult;
  }
  options.model.readout = AggregationOf(readout_);
  options.model.graph_head = graph_head_ == "mlp";
  return any_depth || embedding
             ? absl::OkStatus()
             : CheckLayers(options.model.layers, hops, "fanouts");
}

absl::Status TrainFlags::TakeSeedKind(SeedKind kind, const char* word,
                                      JobSpec& job) const {
  if (app_->count("--seeds") > 0 && job.seed_kind != kind) {
    return UsageError(StrCat("--task ", task_, " learns ", word,
                             "s\nuse --seeds ", word,
                             ", or leave out --seeds"));
  }
  job.seed_kind = kind;
  return absl::OkStatus();
}

absl::Status TrainFlags::FillTask(TrainOptions& options) const {
  options.classes = classes_;
  if (classes_ > 0 && task_ != "single" && task_ != "graph") {
    return UsageError(
        StrCat("--classes is for --task single and graph, not for --task ",
               task_, "\nleave it out"));
  }
  if (task_ != "link") {
    for (const char* option : {"--decoder", "--loss", "--eval-negatives"}) {
      if (app_->count(option) == 0) continue;
      return UsageError(
          StrCat(option, " is for --task link only, not for --task ", task_));
    }
    if (task_ == "graph") {
      MILLRACE_RETURN_IF_ERROR(
          TakeSeedKind(SeedKind::kGraph, "graph", options.job));
    }
    MILLRACE_ASSIGN_OR_RETURN(
        options.task,
        Task::Parse(task_ == "graph" ? "single" : task_, metric_));
    return absl::OkStatus();
  }
  MILLRACE_RETURN_IF_ERROR(TakeSeedKind(SeedKind::kEdge, "edge", options.job));
  // Otherwise the model could see the edges that it has to predict.
  if (!job_.excludes_seed_edges()) {
    options.job.exclude = ExcludeSeedEdges::kReverse;
  }
  const NegativeMode negatives = options.job.negatives.mode;
  const bool softmax = loss_.empty() ? negatives == NegativeMode::kShared ||
                                           negatives == NegativeMode::kInBatch
                                     : loss_ == "softmax";
  MILLRACE_ASSIGN_OR_RETURN(
      options.task,
      Task::Parse(task_, metric_.empty() && softmax ? "mrr" : metric_));
  options.task.loss = softmax ? LinkLoss::kSoftmax : LinkLoss::kBce;
  options.task.negatives = negatives;
  EvaluationOptions& evaluation = options.evaluation;
  if (eval_negatives_.empty()) return absl::OkStatus();
  if (eval_negatives_ == "all" || eval_negatives_ == "given") {
    evaluation.negatives =
        eval_negatives_ == "all" ? EvalNegatives::kAll : EvalNegatives::kGiven;
    return absl::OkStatus();
  }
  evaluation.negatives = EvalNegatives::kDrawn;
  MILLRACE_ASSIGN_OR_RETURN(evaluation.drawn,
                            ParseNegatives(eval_negatives_, "eval_negatives"));
  return absl::OkStatus();
}

absl::Status TrainFlags::FillEvaluation(TrainOptions& options) const {
  EvaluationOptions& evaluation = options.evaluation;
  const bool graphs = options.job.seed_kind == SeedKind::kGraph;
  const bool full =
      inference_ == "full" || (inference_.empty() && !scripted() && !graphs);
  evaluation.kind = full ? InferenceKind::kFull : InferenceKind::kSampled;
  if (!eval_fanouts_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(evaluation.fanouts,
                              ParseFanouts(eval_fanouts_, "eval_fanouts"));
  }
  evaluation.inference.chunk = eval_batch_size_;
  evaluation.inference.all_ranks = eval_ranks_ == "all";
  evaluation.inference.prefetch_batches = options.prefetch_batches;
  evaluation.inference.prefetch_bytes = options.prefetch_bytes;
  options.valid_split = valid_split_;
  options.test_split = test_split_;
  options.eval_every = eval_every_;
  options.predict = predict_;
  options.predict_embeddings = output_ == "embeddings";
  return absl::OkStatus();
}

absl::StatusOr<TrainOptions> TrainFlags::Options(int world) const {
  MILLRACE_RETURN_IF_ERROR(CheckServed());
  TrainOptions options;
  MILLRACE_ASSIGN_OR_RETURN(options.job, job_.Spec(world));
  MILLRACE_ASSIGN_OR_RETURN(const Columns columns, job_.WantedColumns());
  options.feature_dtype = columns.feature_dtype;
  options.prefetch_batches = job_.prefetch_batches();
  options.prefetch_bytes = job_.prefetch_bytes();
  MILLRACE_RETURN_IF_ERROR(FillTask(options));
  MILLRACE_ASSIGN_OR_RETURN(options.seeds, job_.Seeds(options.job.seed_kind));
  MILLRACE_RETURN_IF_ERROR(FillModel(options));
  MILLRACE_RETURN_IF_ERROR(FillEvaluation(options));
  MILLRACE_ASSIGN_OR_RETURN(options.optimizer.kind,
                            OptimizerFromName(optimizer_));
  options.optimizer.lr = lr_;
  options.optimizer.weight_decay = weight_decay_;
  options.lr_schedule = lr_schedule_;
  options.order = order_;
  options.init = init_;
  options.epochs = epochs_;
  options.patience = patience_;
  options.checkpoint = checkpoint_;
  options.checkpoint_every = checkpoint_every_;
  options.keep_best = keep_best_;
  options.resume = resume_;
  options.metrics_json = metrics_json_;
  options.log_every = log_every_;
  options.consumed_log = consumed_log_;
  MILLRACE_RETURN_IF_ERROR(CheckComplete(options));
  return options;
}

}  // namespace millrace
