// SPDX-License-Identifier: Apache-2.0
// Turns the options of millrace-train into TrainOptions.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "client/train/main/train_flags.h"
#include "client/train/run/train_check.h"
#include "client/train/run/train_options.h"
#include "client/train/run/train_words.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/job_texts.h"

namespace millrace {
namespace {

// Counts hops as ResolveJob does once the graph is known.
int Hops(const JobSpec& job) {
  size_t hops = job.fanouts.size();
  for (const auto& [relation, fanouts] : job.relation_fanouts) {
    hops = std::max(hops, fanouts.size());
  }
  return static_cast<int>(hops);
}

// Sets `value` to what the word is for, unless it is not one of the words.
template <typename Value, size_t kCount>
void SetByWord(const ValueWord<Value> (&words)[kCount], std::string_view word,
               Value& value) {
  value = ValueOf(words, word).value_or(value);
}

}  // namespace

absl::Status TrainFlags::CheckDevice() const {
  if (std::find(devices_.begin(), devices_.end(), device_) == devices_.end()) {
    return UnsupportedError(StrCat("--device ", device_,
                                   " is not supported in this version\nuse "
                                   "--device ",
                                   absl::StrJoin(devices_, " or ")));
  }
  if (device() != "cpu") return absl::OkStatus();
  if (worker_for_each_gpu()) {
    return UsageError(
        "--workers gpus starts a trainer for each GPU, which --device cpu does "
        "not use\ngive a number of --workers, or leave --device out");
  }
  if (backend() == Backend::kNccl) {
    return UsageError(
        "--backend nccl adds up gradients between GPUs, which --device cpu "
        "does not use\nuse --backend gloo, or --device cuda");
  }
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
               " has no effect on a script\nleave it out, and script the "
               "model as you want it"));
  }
  return absl::OkStatus();
}

absl::Status TrainFlags::FillEmbedding(TrainOptions& options) const {
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
  options.model.layers = layers_;
  return absl::OkStatus();
}

absl::Status TrainFlags::FillLayers(TrainOptions& options) const {
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
  options.model.layers = layers_ > 0 ? layers_ : hops;
  return any_depth ? absl::OkStatus()
                   : CheckLayers(options.model.layers, hops, "fanouts");
}

absl::Status TrainFlags::FillModel(TrainOptions& options) const {
  ModelConfig& model = options.model;
  if (scripted()) {
    MILLRACE_RETURN_IF_ERROR(FillScript(model));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(model.kind, ModelKindFromName(model_));
  }
  model.hidden = hidden_;
  model.heads = heads_;
  model.bases = bases_;
  SetByWord(kAggregationWords, aggregation_, model.aggregation);
  model.dropout = dropout_;
  SetByWord(kNormWords, norm_, model.norm);
  SetByWord(kGcnNormWords, gcn_norm_, model.gcn_norm);
  SetByWord(kPrecisionWords, precision_, model.precision);
  model.seed = model_seed_;
  model.gin_mlp = gin_mlp_;
  if (options.task.kind == TaskKind::kLink) {
    SetByWord(kDecoderWords, decoder_, model.decoder);
  }
  SetByWord(kAggregationWords, readout_, model.readout);
  SetByWord(kGraphHeadWords, graph_head_, model.graph_head);
  return model.kind == ModelKind::kEmbedding ? FillEmbedding(options)
                                             : FillLayers(options);
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

absl::Status TrainFlags::CheckTaskOptions() const {
  if (classes_ > 0 && task_ != "single" && task_ != "graph") {
    return UsageError(
        StrCat("--classes is for --task single and graph, not for --task ",
               task_, "\nleave it out"));
  }
  if (task_ == "link") return absl::OkStatus();
  for (const char* option : {"--decoder", "--loss", "--eval-negatives"}) {
    if (app_->count(option) == 0) continue;
    return UsageError(
        StrCat(option, " is for --task link only, not for --task ", task_));
  }
  return absl::OkStatus();
}

absl::Status TrainFlags::FillTask(TrainOptions& options) const {
  options.classes = classes_;
  MILLRACE_RETURN_IF_ERROR(CheckTaskOptions());
  if (task_ == "link") return FillLinks(options);
  const bool graphs = task_ == "graph";
  if (graphs) {
    MILLRACE_RETURN_IF_ERROR(
        TakeSeedKind(SeedKind::kGraph, "graph", options.job));
  }
  MILLRACE_ASSIGN_OR_RETURN(options.task,
                            Task::Parse(graphs ? "single" : task_, metric_));
  return absl::OkStatus();
}

absl::Status TrainFlags::FillLinks(TrainOptions& options) const {
  MILLRACE_RETURN_IF_ERROR(TakeSeedKind(SeedKind::kEdge, "edge", options.job));
  // Otherwise the model could see the edges that it has to predict.
  if (!job_.excludes_seed_edges()) {
    options.job.exclude = ExcludeSeedEdges::kReverse;
  }
  const NegativeMode negatives = options.job.negatives.mode;
  const bool compared =
      negatives == NegativeMode::kShared || negatives == NegativeMode::kInBatch;
  LinkLoss loss = compared ? LinkLoss::kSoftmax : LinkLoss::kBce;
  SetByWord(kLossWords, loss_, loss);
  const bool ranks = metric_.empty() && loss == LinkLoss::kSoftmax;
  MILLRACE_ASSIGN_OR_RETURN(options.task,
                            Task::Parse(task_, ranks ? "mrr" : metric_));
  options.task.loss = loss;
  options.task.negatives = negatives;
  return FillEvalNegatives(options.evaluation);
}

absl::Status TrainFlags::FillEvalNegatives(
    EvaluationOptions& evaluation) const {
  if (eval_negatives_.empty()) return absl::OkStatus();
  evaluation.negatives = EvalNegatives::kDrawn;
  SetByWord(kEvalNegativesWords, eval_negatives_, evaluation.negatives);
  if (evaluation.negatives != EvalNegatives::kDrawn) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(evaluation.drawn,
                            ParseNegatives(eval_negatives_, "eval_negatives"));
  return absl::OkStatus();
}

absl::Status TrainFlags::FillEvaluation(TrainOptions& options) const {
  EvaluationOptions& evaluation = options.evaluation;
  const bool graphs = options.job.seed_kind == SeedKind::kGraph;
  evaluation.kind =
      scripted() || graphs ? InferenceKind::kSampled : InferenceKind::kFull;
  SetByWord(kInferenceWords, inference_, evaluation.kind);
  if (!eval_fanouts_.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(evaluation.fanouts,
                              ParseFanouts(eval_fanouts_, "eval_fanouts"));
  }
  evaluation.inference.chunk = eval_batch_size_;
  SetByWord(kEvalRanksWords, eval_ranks_, evaluation.inference.all_ranks);
  evaluation.inference.prefetch_batches = options.prefetch_batches;
  evaluation.inference.prefetch_bytes = options.prefetch_bytes;
  options.valid_split = valid_split_;
  options.test_split = test_split_;
  options.eval_every = eval_every_;
  options.predict = predict_;
  SetByWord(kOutputWords, output_, options.predict_embeddings);
  return absl::OkStatus();
}

absl::StatusOr<HostPort> TrainFlags::MetricsAddress(int place) const {
  constexpr int kLastPort = 65535;
  MILLRACE_ASSIGN_OR_RETURN(HostPort address, metrics_.Address());
  if (address.port == 0) return address;
  const int port = address.port + place;
  if (port > kLastPort) {
    return UsageError(StrCat("--metrics ", address.WithPort(address.port),
                             ": rank ", place, " of this host would need port ",
                             port, ", but the last one is ", kLastPort,
                             "\ngive a lower port"));
  }
  address.port = static_cast<uint16_t>(port);
  return address;
}

absl::StatusOr<TrainOptions> TrainFlags::Options(int world) const {
  MILLRACE_RETURN_IF_ERROR(CheckDevice());
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
  SetByWord(kOptimizerWords, optimizer_, options.optimizer.kind);
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
