// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_flags.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "client/train/run/train_words.h"
#include "common/base/quoted.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Accepts the values of --model: one of the words, or script:FILE.
CLI::Validator ModelWord() {
  std::vector<std::string> kinds;
  for (const ModelKindInfo& info : kModelKinds) {
    kinds.push_back(StrCat(info.name, info.argument));
  }
  CLI::Validator words = OneOf(std::move(kinds));
  return CLI::Validator(
      [words](std::string& word) -> std::string {
        constexpr std::string_view script = TrainFlags::kScript;
        if (!word.starts_with(script)) return words(word);
        return word.size() > script.size() ? "" : "no file after script:";
      },
      words.get_description());
}

// Accepts the values of --workers: a number of at least 1, or `gpus`.
CLI::Validator WorkersWord(std::string_view gpus) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const CLI::Validator number = WholeNumber(1, kMost);
  return CLI::Validator(
      [=](std::string& word) -> std::string {
        if (word == gpus || number(word).empty()) return "";
        return StrCat(Quoted(word), " is neither a whole number from 1 to ",
                      kMost, " nor ", gpus);
      },
      "");
}

std::string ModelNotes() {
  std::vector<std::string> notes;
  for (const ModelKindInfo& info : kModelKinds) {
    if (info.note.empty()) continue;
    notes.push_back(StrCat(info.name, info.argument, " ", info.note));
  }
  return absl::StrJoin(notes, "; ");
}

// The help of an option that only the kinds with `property` read.
std::string HelpFor(bool ModelKindInfo::*property, const char* help) {
  return StrCat(absl::StrJoin(KindsWith(property), ", "), ": ", help);
}

}  // namespace

void TrainFlags::AddTo(CLI::App& app) {
  app_ = &app;
  job_.AddTo(app);
  AddTask(*app.add_option_group("Task"));
  AddModel(*app.add_option_group("Model"));
  AddTraining(*app.add_option_group("Training"));
  AddProcesses(*app.add_option_group("Processes"));
  AddEvaluation(*app.add_option_group("Evaluation"));
  AddFiles(*app.add_option_group("Checkpoints and results"));
  metrics_.AddTo(
      *app.add_option_group("Metrics"),
      "address for a page to look at (/) and Prometheus metrics (/metrics), "
      "over HTTP without TLS; rank R of this host uses port PORT + R; port 0 "
      "picks free ones",
      "also serve --metrics to other hosts");
}

void TrainFlags::AddTask(CLI::App& group) {
  group
      .add_option("--task", task_,
                  "single: one class per node; multi: a yes or no per label "
                  "column; binary: a single yes or no; regression: numbers; "
                  "graph: one class per graph, with --seeds graph; link: which "
                  "edges exist, with --seeds edge")
      ->check(
          OneOf({"single", "multi", "binary", "regression", "graph", "link"}));
  group
      .add_option("--classes", classes_,
                  "number of classes for --task single and graph; 0 means one "
                  "more than the largest label of the splits")
      ->check(AtLeast(0));
  group.add_option("--decoder", decoder_, "--task link: how an edge is scored")
      ->check(OneOf(WordsIn(kDecoderWords)));
  group
      .add_option("--loss", loss_,
                  "--task link: bce: a yes or no for each edge and negative; "
                  "softmax: each edge among its negatives; default: softmax "
                  "for --negatives shared and in-batch, otherwise bce")
      ->check(OneOf(WordsIn(kLossWords)));
}

void TrainFlags::AddModel(CLI::App& group) {
  group.add_option("--model", model_, ModelNotes())->check(ModelWord());
  group.add_option("--hidden", hidden_, "width of the hidden layers")
      ->check(AtLeast(1));
  group
      .add_option("--layers", layers_,
                  "number of layers; 0 means as many as fanouts")
      ->check(WholeNumber(0, kMaxLayers));
  group
      .add_option("--heads", heads_,
                  HelpFor(&ModelKindInfo::reads_heads,
                          "attention heads, concatenated in hidden layers and "
                          "averaged in the last"))
      ->check(AtLeast(1));
  group
      .add_option(
          "--aggr", aggregation_,
          HelpFor(&ModelKindInfo::reads_aggr, "how neighbours are aggregated"))
      ->check(OneOf(WordsIn(kAggregationWords)));
  group
      .add_option("--num-bases", bases_,
                  HelpFor(&ModelKindInfo::reads_num_bases,
                          "number of basis matrices for the relations' "
                          "weights; 0 means one matrix per relation"))
      ->check(AtLeast(0));
  group.add_option(
      "--dropout", dropout_,
      StrCat("dropout probability, after each hidden layer and in the "
             "attention of ",
             absl::StrJoin(KindsWith(&ModelKindInfo::reads_heads), " and ")));
  group.add_option("--norm", norm_, "normalization of hidden layers")
      ->check(OneOf(WordsIn(kNormWords)));
  group
      .add_option("--gcn-norm", gcn_norm_,
                  "full: by true degrees; sampled: by degrees in the subgraph, "
                  "as PyG does")
      ->check(OneOf(WordsIn(kGcnNormWords)));
  group
      .add_option("--gin-mlp", gin_mlp_,
                  HelpFor(&ModelKindInfo::reads_gin_mlp,
                          "layers of each convolution's MLP, 1 or 2"))
      ->check(WholeNumber(1, 2));
  group
      .add_option("--readout", readout_,
                  "how a graph's row is computed from its nodes' rows")
      ->check(OneOf(WordsIn(kAggregationWords)));
  group.add_option("--graph-head", graph_head_, "what follows the readout")
      ->check(OneOf(WordsIn(kGraphHeadWords)));
  group.add_option("--model-seed", model_seed_, "seed of the initial weights");
  group
      .add_option("--init", init_,
                  "initial weights by name: a state_dict saved with "
                  "torch.save, or a checkpoint")
      ->type_name("FILE");
}

void TrainFlags::AddTraining(CLI::App& group) {
  group.add_option("--epochs", epochs_,
                   "number of epochs of the whole run, including those before "
                   "--resume");
  group
      .add_option("--order", order_,
                  ".npy: original ids of the seeds in the order to train in, "
                  "[n] or [epochs, n]; no shuffling")
      ->type_name("FILE");
  group.add_option("--lr", lr_, "learning rate");
  group.add_option("--weight-decay", weight_decay_, "as in torch.optim")
      ->check(Number(0, kNoLimit));
  group.add_option("--optimizer", optimizer_, "update rule, as in torch.optim")
      ->check(OneOf(WordsIn(kOptimizerWords)));
  group
      .add_option("--lr-schedule", lr_schedule_,
                  "constant | cosine | step:EPOCHS:FACTOR")
      ->type_name("SCHEDULE");
  group
      .add_option(
          "--precision", precision_,
          "of matrix products in training: bf16 is faster on GPUs and "
          "some CPUs; parameters, gradients and evaluation stay float32")
      ->check(OneOf(WordsIn(kPrecisionWords)));
  group.add_option("--patience", patience_,
                   "stop after this many evaluations without a better "
                   "validation metric; 0 means never");
}

void TrainFlags::AddProcesses(CLI::App& group) {
  CLI::Option* workers =
      group
          .add_option("--workers", workers_,
                      "trainer processes to start on this host; gpus: one for "
                      "each GPU, which implies --device cuda; by default, the "
                      "variables of torchrun, mpirun or srun are used")
          ->check(WorkersWord(kGpus))
          ->type_name("N|gpus");
  group
      .add_option("--rendezvous-secret", rendezvous_secret_,
                  "file with the secret, at least 16 bytes, by which trainers "
                  "on several hosts recognise each other; --workers makes its "
                  "own")
      ->excludes(workers)
      ->type_name("FILE");
  group.add_option("--device", device_, "where to train")
      ->type_name(absl::StrJoin(devices_, "|"));
  group
      .add_option("--backend", backend_,
                  "what adds up gradients: nccl between GPUs, gloo in the "
                  "host's memory; default: nccl on GPUs, gloo on the CPU")
      ->check(OneOf(WordsIn(kBackendWords)));
}

int TrainFlags::workers() const {
  int number = 0;
  if (!worker_for_each_gpu()) CLI::detail::lexical_cast(workers_, number);
  return number;
}

const std::string& TrainFlags::device() const {
  const bool implied = worker_for_each_gpu() && app_->count("--device") == 0;
  return implied && devices_.size() > 1 ? devices_[1] : device_;
}

void TrainFlags::AddEvaluation(CLI::App& group) {
  group
      .add_option("--metric", metric_,
                  "accuracy | rocauc | f1-micro | f1-macro | rmse | mrr | "
                  "hits@K; default: accuracy for --task single, f1-micro for "
                  "multi, rocauc for binary, rmse for regression, and for link "
                  "mrr with --loss softmax and rocauc with bce")
      ->type_name("METRIC");
  group
      .add_option("--eval-negatives", eval_negatives_,
                  "all | given | binary:R | triplet:K | shared:K: what edges "
                  "are compared with; default: given negatives if there are "
                  "any, otherwise all for mrr and hits@K (triplet:100 with "
                  "--inference sampled) and binary:1 for other metrics")
      ->type_name("KIND");
  group
      .add_option("--valid-split", valid_split_,
                  "split that chooses the best model; default: valid, if it "
                  "exists")
      ->type_name("NAME");
  group
      .add_option("--test-split", test_split_,
                  "split for the test metric; default: test, if it exists")
      ->type_name("NAME");
  group.add_option("--eval-every", eval_every_,
                   "epochs between evaluations; 0 means only after the last");
  group
      .add_option("--inference", inference_,
                  "full: exact, layer by layer over all neighbours; sampled: "
                  "in batches, the default for scripts and --task graph")
      ->check(OneOf(WordsIn(kInferenceWords)));
  group
      .add_option("--eval-fanouts", eval_fanouts_,
                  "fanouts for sampled inference; default: --fanouts")
      ->type_name("N,N,...");
  group
      .add_option("--eval-batch-size", eval_batch_size_,
                  "nodes per batch of evaluation")
      ->check(AtLeast(1));
  group.add_option("--eval-ranks", eval_ranks_, "which ranks evaluate")
      ->check(OneOf(WordsIn(kEvalRanksWords)));
  group
      .add_option("--predict", predict_,
                  "write a .npy of all nodes' rows in original id order")
      ->type_name("FILE");
  group.add_option("--output", output_, "what --predict writes")
      ->check(OneOf(WordsIn(kOutputWords)));
}

void TrainFlags::AddFiles(CLI::App& group) {
  group
      .add_option("--checkpoint", checkpoint_, "folder for last.pt and best.pt")
      ->type_name("DIR");
  group.add_option("--checkpoint-every", checkpoint_every_,
                   "steps between checkpoints; 0 means at each epoch's end");
  group.add_flag("--keep-best", keep_best_,
                 "keep best.pt, the checkpoint with the best validation "
                 "metric");
  group.add_flag("--resume", resume_,
                 "continue from last.pt if it exists; with --epochs 0, only "
                 "evaluate or predict (from best.pt with --keep-best)");
  group
      .add_option("--metrics-json", metrics_json_,
                  "write one JSON object per line")
      ->type_name("FILE");
  group.add_option(
      "--log-every", log_every_,
      "steps between lines of --metrics-json; 0 means epochs only");
  group
      .add_option("--consumed-log", consumed_log_,
                  "write one line per batch trained on, with its digest")
      ->type_name("FILE");
}

}  // namespace millrace
