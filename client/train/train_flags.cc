// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/train/train_check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"

namespace millrace {
namespace {

constexpr std::string_view kScript = "script:";

// Words that cli.md promises and this version does not serve yet.
absl::Status Later(const char* option, const std::string& value,
                   const char* served) {
  return absl::UnimplementedError(
      StrCat(option, " ", value, " does not exist in this version\nuse ",
             option, " ", served));
}

absl::StatusOr<Fanouts> ParseFanouts(const std::string& text) {
  Fanouts fanouts;
  if (text.empty()) return fanouts;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    int32_t fanout = 0;
    if (!absl::SimpleAtoi(part, &fanout) || fanout < kAllNeighbors) {
      return absl::InvalidArgumentError(StrCat(
          "--eval-fanouts holds \"", part, "\", not a number of at least -1"));
    }
    fanouts.push_back(fanout);
  }
  return fanouts;
}

// As ResolveJob counts them once the graph is known.
int Hops(const JobSpec& job) {
  size_t hops = job.fanouts.size();
  for (const auto& [relation, fanouts] : job.relation_fanouts) {
    hops = std::max(hops, fanouts.size());
  }
  return static_cast<int>(hops);
}

// Of --model; as CLI11 wants it: what is wrong, or nothing.
std::string CheckModelWord(const std::string& word) {
  if (word.starts_with(kScript)) {
    return word.size() > kScript.size() ? "" : "no file after script:";
  }
  return CLI::IsMember({"sage", "gat", "rgcn", "gin", "gcn", "embedding"})(
      word);
}

}  // namespace

void TrainFlags::AddTo(CLI::App& app) {
  app_ = &app;
  job_.AddTo(app);
  AddModel(app);
  AddTraining(app);
  AddEvaluation(app);
  AddFiles(app);
}

void TrainFlags::AddModel(CLI::App& app) {
  app.add_option("--model", model_,
                 "sage | gat | rgcn | gin | gcn (on graphs of one relation "
                 "alone) | embedding (each node's row, for --task link) | "
                 "script:FILE (your own, saved by torch.jit.script(model)."
                 "save(FILE))")
      ->check(CheckModelWord)
      ->group("Model");
  app.add_option("--hidden", hidden_, "Width of the hidden layers")
      ->group("Model");
  app.add_option("--layers", layers_, "Layers; 0: as many as fanouts")
      ->check(CLI::Range(0, kMaxLayers))
      ->group("Model");
  app.add_option("--heads", heads_,
                 "Of gat: joined in hidden layers, averaged in the last")
      ->check(AtLeast(1))
      ->group("Model");
  app.add_option("--aggr", aggregation_,
                 "mean | sum | max: how sage adds up neighbours")
      ->check(CLI::IsMember({"mean", "sum", "max"}))
      ->group("Model");
  app.add_option("--num-bases", bases_,
                 "Of rgcn: matrices that the relations' are mixed from; 0: one "
                 "a relation")
      ->check(CLI::NonNegativeNumber)
      ->group("Model");
  app.add_option("--dropout", dropout_,
                 "Probability, after each hidden layer and of gat's attention")
      ->group("Model");
  app.add_option("--norm", norm_, "none | batch | layer, in hidden layers")
      ->check(CLI::IsMember({"none", "batch", "layer"}))
      ->group("Model");
  app.add_option("--gcn-norm", gcn_norm_,
                 "full: by true degrees; sampled: by the subgraph's, as PyG")
      ->check(CLI::IsMember({"full", "sampled"}))
      ->group("Model");
  app.add_option("--gin-mlp", gin_mlp_,
                 "Of gin: layers of each convolution's MLP, 1 or 2")
      ->check(CLI::Range(1, 2))
      ->group("Model");
  app.add_option("--readout", readout_,
                 "sum | mean | max: a graph's row from its nodes'")
      ->check(CLI::IsMember({"mean", "sum", "max"}))
      ->group("Model");
  app.add_option("--graph-head", graph_head_,
                 "mlp | none: what follows the readout")
      ->check(CLI::IsMember({"mlp", "none"}))
      ->group("Model");
  app.add_option(
         "--task", task_,
         "single: one class a node; multi: a yes or no per label "
         "column; binary: one; regression: numbers; graph: one class a graph, "
         "with --seeds graph; link: which edges there are, with --seeds edge")
      ->check(CLI::IsMember(
          {"single", "multi", "binary", "regression", "graph", "link"}))
      ->group("Model");
  app.add_option("--decoder", decoder_,
                 "dot | distmult: an edge's score, of --task link")
      ->check(CLI::IsMember({"dot", "distmult"}))
      ->group("Model");
  app.add_option("--loss", loss_,
                 "bce: yes or no for each edge and negative; softmax: the edge "
                 "among its negatives; default: softmax for --negatives shared "
                 "and in-batch")
      ->check(CLI::IsMember({"bce", "softmax"}))
      ->group("Model");
  app.add_option("--model-seed", model_seed_, "Of the initial weights")
      ->group("Model");
  app.add_option("--init", init_,
                 "Initial weights by name: torch.save's file of a state_dict, "
                 "or a checkpoint")
      ->group("Model");
}

void TrainFlags::AddTraining(CLI::App& app) {
  app.add_option("--epochs", epochs_, "Epochs of the whole run, from 0 on")
      ->group("Training");
  app.add_option("--order", order_,
                 ".npy: original ids of the seeds in the order to train in, "
                 "[n] or [epochs, n]; no shuffling")
      ->group("Training");
  app.add_option("--lr", lr_, "Learning rate")->group("Training");
  app.add_option("--weight-decay", weight_decay_, "As torch.optim's")
      ->check(CLI::NonNegativeNumber)
      ->group("Training");
  app.add_option("--optimizer", optimizer_, "adam | adamw | sgd")
      ->check(CLI::IsMember({"adam", "adamw", "sgd"}))
      ->group("Training");
  app.add_option("--lr-schedule", lr_schedule_,
                 "constant | cosine | step:EPOCHS:FACTOR")
      ->group("Training");
  app.add_option("--patience", patience_,
                 "Stop after so many evaluations without a better valid; 0: "
                 "never")
      ->group("Training");
  app.add_option("--workers", workers_,
                 "Trainer processes to start on this host; without it RANK, "
                 "WORLD_SIZE, MASTER_ADDR and MASTER_PORT count")
      ->check(AtLeast(1))
      ->group("Training");
  app.add_option("--device", device_, "cpu")->group("Training");
  app.add_option("--backend", backend_, "gloo")->group("Training");
}

void TrainFlags::AddEvaluation(CLI::App& app) {
  app.add_option("--metric", metric_,
                 "accuracy | rocauc | f1-micro | f1-macro | rmse | mrr | "
                 "hits@K; default: accuracy for --task single, f1-micro for "
                 "multi, rocauc for binary, rmse for regression, of link mrr "
                 "with --loss softmax and rocauc with bce")
      ->group("Evaluation");
  app.add_option("--eval-negatives", eval_negatives_,
                 "all | given | binary:R | triplet:K | shared:K: what edges "
                 "are compared with; default: given ones, else for mrr and "
                 "hits@K all (triplet:100 with --inference sampled), for "
                 "others binary:1")
      ->group("Evaluation");
  app.add_option("--valid-split", valid_split_,
                 "Split that chooses the best model; default: valid, if it is "
                 "there")
      ->group("Evaluation");
  app.add_option("--test-split", test_split_,
                 "Split of the test metric; default: test, if it is there")
      ->group("Evaluation");
  app.add_option("--eval-every", eval_every_,
                 "Epochs between evaluations; 0: only after the last")
      ->group("Evaluation");
  app.add_option("--inference", inference_,
                 "full: exact, layer by layer over all neighbours; sampled: "
                 "by batches, the default of scripts")
      ->check(CLI::IsMember({"full", "sampled"}))
      ->group("Evaluation");
  app.add_option("--eval-fanouts", eval_fanouts_,
                 "Of sampled inference; default: --fanouts")
      ->group("Evaluation");
  app.add_option("--eval-batch-size", eval_batch_size_,
                 "Nodes asked for at once")
      ->check(AtLeast(1))
      ->group("Evaluation");
  app.add_option("--eval-ranks", eval_ranks_, "0 | all: who evaluates")
      ->check(CLI::IsMember({"0", "all"}))
      ->group("Evaluation");
  app.add_option("--predict", predict_,
                 "Write a .npy of all nodes' rows in original id order")
      ->group("Evaluation");
  app.add_option("--output", output_, "logits | embeddings, of --predict")
      ->check(CLI::IsMember({"logits", "embeddings"}))
      ->group("Evaluation");
}

void TrainFlags::AddFiles(CLI::App& app) {
  app.add_option("--checkpoint", checkpoint_, "Folder for last.pt and best.pt")
      ->group("Files");
  app.add_option("--checkpoint-every", checkpoint_every_,
                 "Steps between checkpoints; 0: each epoch's end")
      ->group("Files");
  app.add_flag("--keep-best", keep_best_,
               "Keep best.pt, the checkpoint of the best valid")
      ->group("Files");
  app.add_flag("--resume", resume_,
               "Go on from last.pt if it is there; with --epochs 0 evaluate "
               "or predict alone (--keep-best: with best.pt)")
      ->group("Files");
  app.add_option("--metrics-json", metrics_json_,
                 "Write one JSON object a line")
      ->group("Files");
  app.add_option("--log-every", log_every_,
                 "Steps between lines of --metrics-json; 0: epochs only")
      ->group("Files");
  app.add_option("--consumed-log", consumed_log_,
                 "Write one line a batch trained on, with its digest")
      ->group("Files");
}

absl::Status TrainFlags::CheckServed() const {
  if (device_ != "cpu") return Later("--device", device_, "cpu");
  if (backend_ != "gloo") return Later("--backend", backend_, "gloo");
  return absl::OkStatus();
}

namespace {

Aggregation AggregationOf(const std::string& word) {
  if (word == "sum") return Aggregation::kSum;
  return word == "max" ? Aggregation::kMax : Aggregation::kMean;
}

}  // namespace

bool TrainFlags::scripted() const { return model_.starts_with(kScript); }

absl::Status TrainFlags::FillScript(ModelConfig& model) const {
  model.kind = "script";
  model.script = model_.substr(kScript.size());
  for (const char* option :
       {"--hidden", "--heads", "--aggr", "--num-bases", "--dropout", "--norm",
        "--gcn-norm", "--gin-mlp", "--graph-head"}) {
    if (app_->count(option) == 0) continue;
    return absl::InvalidArgumentError(
        StrCat(option,
               " does not change a model that is a script\nleave it "
               "out, and script the model as you want it"));
  }
  return absl::OkStatus();
}

absl::Status TrainFlags::FillModel(TrainOptions& options) const {
  options.model.kind = model_;
  if (scripted()) {
    MILLRACE_RETURN_IF_ERROR(FillScript(options.model));
  }
  options.model.hidden = hidden_;
  if (model_ == "embedding") {
    if (options.task.kind != TaskKind::kLink) {
      return absl::InvalidArgumentError(
          StrCat("--model embedding is for --task link, not for --task ", task_,
                 "\nuse another --model"));
    }
    if (Hops(options.job) > 0) {
      return absl::InvalidArgumentError(
          "--model embedding reads no neighbours\nleave out --fanouts");
    }
    options.job.fanouts = {0};
  }
  const int hops = Hops(options.job);
  const bool any_depth = options.job.seed_kind == SeedKind::kGraph ||
                         EdgesOfAllNodes(options.job.method);
  if (hops == 0 && any_depth && layers_ == 0) {
    return absl::InvalidArgumentError(
        "--layers is needed to train on walks or graphs\ngive e.g. --layers "
        "2");
  }
  if (hops == 0 && !any_depth) {
    return absl::InvalidArgumentError(
        "--fanouts is needed to train, one number per layer\ngive e.g. "
        "--fanouts 15,10 for two layers");
  }
  options.model.layers = layers_ > 0 || model_ == "embedding" ? layers_ : hops;
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
  return any_depth || model_ == "embedding"
             ? absl::OkStatus()
             : CheckLayers(options.model.layers, hops, "--fanouts");
}

absl::Status TrainFlags::TakeSeedKind(SeedKind kind, const char* word,
                                      JobSpec& job) const {
  if (app_->count("--seeds") > 0 && job.seed_kind != kind) {
    return absl::InvalidArgumentError(StrCat("--task ", task_, " learns ", word,
                                             "s\nuse --seeds ", word,
                                             ", or leave out --seeds"));
  }
  job.seed_kind = kind;
  return absl::OkStatus();
}

absl::Status TrainFlags::FillTask(TrainOptions& options) const {
  if (task_ != "link") {
    for (const char* option : {"--decoder", "--loss", "--eval-negatives"}) {
      if (app_->count(option) == 0) continue;
      return absl::InvalidArgumentError(
          StrCat(option, " is of --task link alone, not of --task ", task_));
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
  // The very edges that are to be learned are not to be read off the batch.
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
  MILLRACE_ASSIGN_OR_RETURN(
      evaluation.drawn, ParseNegatives("--eval-negatives", eval_negatives_));
  return absl::OkStatus();
}

absl::Status TrainFlags::FillEvaluation(TrainOptions& options) const {
  EvaluationOptions& evaluation = options.evaluation;
  const bool graphs = options.job.seed_kind == SeedKind::kGraph;
  const bool full =
      inference_ == "full" || (inference_.empty() && !scripted() && !graphs);
  evaluation.kind = full ? InferenceKind::kFull : InferenceKind::kSampled;
  MILLRACE_ASSIGN_OR_RETURN(evaluation.fanouts, ParseFanouts(eval_fanouts_));
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
  if (checkpoint_.empty() && (keep_best_ || resume_ || checkpoint_every_ > 0)) {
    return absl::InvalidArgumentError(
        "--checkpoint DIR is needed by --checkpoint-every, --keep-best and "
        "--resume");
  }
  return options;
}

}  // namespace millrace
