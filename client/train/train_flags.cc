// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_flags.h"

#include "common/cli/numbers.h"

namespace millrace {
namespace {

// Of --model; as CLI11 wants it: what is wrong, or nothing.
std::string CheckModelWord(const std::string& word) {
  constexpr std::string_view script = TrainFlags::kScript;
  if (word.starts_with(script)) {
    return word.size() > script.size() ? "" : "no file after script:";
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
  app.add_option("--classes", classes_,
                 "Classes of --task single and graph; 0: one more than the "
                 "largest label of the splits")
      ->check(CLI::NonNegativeNumber)
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
  CLI::Option* workers =
      app.add_option("--workers", workers_,
                     "Trainer processes to start on this host; without it the "
                     "variables of torchrun, mpirun or srun are used")
          ->check(AtLeast(1))
          ->group("Training");
  app.add_option("--rendezvous-secret", rendezvous_secret_,
                 "File with the secret, at least 16 bytes, by which trainers "
                 "on several hosts know each other; --workers makes its own")
      ->excludes(workers)
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

}  // namespace millrace
