// SPDX-License-Identifier: Apache-2.0
// What the options of millrace-train make of a run.
#include "client/train/main/train_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/train/main/train_advice.h"
#include "common/base/field_error.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The options that a command line gives for a group of `world`.
absl::StatusOr<TrainOptions> Parsed(const std::string& line, int world = 1) {
  CLI::App app;
  TrainFlags flags;
  flags.AddTo(app);
  try {
    app.parse(line);
  } catch (const CLI::Error& error) {
    return absl::UnknownError(error.what());
  }
  return flags.Options(world);
}

TrainOptions Options(const std::string& line, int world = 1) {
  const auto options = Parsed(line, world);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(TrainOptions());
}

std::string Refusal(const std::string& line) {
  return std::string(Parsed(line).status().message());
}

TEST(TrainFlagsTest, DefaultsAreThoseOfTheHelp) {
  const TrainOptions options = Options("--fanouts 15,10");
  EXPECT_EQ(options.job.seed_kind, SeedKind::kNode);
  EXPECT_THAT(options.job.fanouts, ElementsAre(15, 10));
  EXPECT_EQ(options.seeds, std::nullopt);
  EXPECT_EQ(options.feature_dtype, DType::kNone);
  EXPECT_EQ(options.model.kind, ModelKind::kSage);
  EXPECT_EQ(options.model.hidden, 256);
  EXPECT_EQ(options.model.layers, 2);
  EXPECT_EQ(options.model.heads, 1);
  EXPECT_EQ(options.model.bases, 0);
  EXPECT_EQ(options.model.aggregation, Aggregation::kMean);
  EXPECT_EQ(options.model.dropout, 0);
  EXPECT_EQ(options.model.norm, NormKind::kNone);
  EXPECT_EQ(options.model.gcn_norm, GcnNorm::kFull);
  EXPECT_EQ(options.model.gin_mlp, 2);
  EXPECT_EQ(options.model.readout, Aggregation::kSum);
  EXPECT_TRUE(options.model.graph_head);
  EXPECT_EQ(options.model.decoder, DecoderKind::kNone);
  EXPECT_EQ(options.model.seed, 1u);
  EXPECT_EQ(options.task.kind, TaskKind::kSingle);
  EXPECT_EQ(options.task.metric, MetricKind::kAccuracy);
  EXPECT_EQ(options.classes, 0);
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(options.optimizer.lr, 0.003);
  EXPECT_EQ(options.optimizer.weight_decay, 0);
  EXPECT_EQ(options.lr_schedule, "constant");
  EXPECT_EQ(options.epochs, 10u);
  EXPECT_EQ(options.patience, 0u);
  EXPECT_EQ(options.evaluation.kind, InferenceKind::kFull);
  EXPECT_TRUE(options.evaluation.fanouts.empty());
  EXPECT_EQ(options.evaluation.inference.chunk, 4096);
  EXPECT_TRUE(options.evaluation.inference.all_ranks);
  EXPECT_EQ(options.evaluation.negatives, EvalNegatives::kDefault);
  EXPECT_EQ(options.eval_every, 1u);
  EXPECT_EQ(options.checkpoint_every, 0u);
  EXPECT_FALSE(options.keep_best || options.resume);
  EXPECT_FALSE(options.predict_embeddings);
  EXPECT_EQ(options.log_every, 0u);
  EXPECT_EQ(options.prefetch_batches, 4);
}

TEST(TrainFlagsTest, EveryOptionHasItsField) {
  const TrainOptions options = Options(
      "--fanouts 5,5,5 --model gat --hidden 32 --layers 3 --heads 4 --aggr max "
      "--num-bases 5 --dropout 0.25 --norm batch --gcn-norm sampled --gin-mlp "
      "1 --readout mean --graph-head none --model-seed 9 --init i.pt --task "
      "single --classes 7 --metric f1-macro --epochs 3 --order o.npy --lr 0.5 "
      "--weight-decay 0.125 --optimizer sgd --lr-schedule cosine --patience 4 "
      "--valid-split v --test-split t --eval-every 6 --inference sampled "
      "--eval-fanouts 7,-1,3 --eval-batch-size 17 --eval-ranks 0 --predict p "
      "--output embeddings --checkpoint c --checkpoint-every 8 --keep-best "
      "--resume --metrics-json m --log-every 11 --consumed-log l "
      "--prefetch-batches 2");
  EXPECT_EQ(options.model.kind, ModelKind::kGat);
  EXPECT_EQ(options.model.hidden, 32);
  EXPECT_EQ(options.model.layers, 3);
  EXPECT_EQ(options.model.heads, 4);
  EXPECT_EQ(options.model.aggregation, Aggregation::kMax);
  EXPECT_EQ(options.model.bases, 5);
  EXPECT_EQ(options.model.dropout, 0.25);
  EXPECT_EQ(options.model.norm, NormKind::kBatch);
  EXPECT_EQ(options.model.gcn_norm, GcnNorm::kSampled);
  EXPECT_EQ(options.model.gin_mlp, 1);
  EXPECT_EQ(options.model.readout, Aggregation::kMean);
  EXPECT_FALSE(options.model.graph_head);
  EXPECT_EQ(options.model.seed, 9u);
  EXPECT_EQ(options.init, "i.pt");
  EXPECT_EQ(options.classes, 7);
  EXPECT_EQ(options.task.metric, MetricKind::kF1Macro);
  EXPECT_EQ(options.epochs, 3u);
  EXPECT_EQ(options.order, "o.npy");
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(options.optimizer.lr, 0.5);
  EXPECT_EQ(options.optimizer.weight_decay, 0.125);
  EXPECT_EQ(options.lr_schedule, "cosine");
  EXPECT_EQ(options.patience, 4u);
  EXPECT_EQ(options.valid_split, "v");
  EXPECT_EQ(options.test_split, "t");
  EXPECT_EQ(options.eval_every, 6u);
  EXPECT_EQ(options.evaluation.kind, InferenceKind::kSampled);
  EXPECT_THAT(options.evaluation.fanouts, ElementsAre(7, -1, 3));
  EXPECT_EQ(options.evaluation.inference.chunk, 17);
  EXPECT_FALSE(options.evaluation.inference.all_ranks);
  EXPECT_EQ(options.evaluation.inference.prefetch_batches, 2);
  EXPECT_EQ(options.evaluation.inference.prefetch_bytes,
            options.prefetch_bytes);
  EXPECT_EQ(options.predict, "p");
  EXPECT_TRUE(options.predict_embeddings);
  EXPECT_EQ(options.checkpoint, "c");
  EXPECT_EQ(options.checkpoint_every, 8u);
  EXPECT_TRUE(options.keep_best);
  EXPECT_TRUE(options.resume);
  EXPECT_EQ(options.metrics_json, "m");
  EXPECT_EQ(options.log_every, 11u);
  EXPECT_EQ(options.consumed_log, "l");
  EXPECT_EQ(options.prefetch_batches, 2);
  EXPECT_EQ(Options("--fanouts 5 --norm layer --aggr sum").model.norm,
            NormKind::kLayer);
  EXPECT_EQ(Options("--fanouts 5 --aggr sum").model.aggregation,
            Aggregation::kSum);
  EXPECT_EQ(Options("--fanouts 5 --feature-dtype bfloat16").feature_dtype,
            DType::kBFloat16);
}

TEST(TrainFlagsTest, AGlobalBatchIsDividedAmongRanks) {
  EXPECT_EQ(Options("--fanouts 5 --global-batch-size 96", 3).job.batch_size,
            32);
}

TEST(TrainFlagsTest, ThereAreAsManyLayersAsFanouts) {
  EXPECT_EQ(Options("--fanouts 5,5,5").model.layers, 3);
  EXPECT_EQ(Options("--fanouts a__b__c=5,5,5,5 --fanouts 3").model.layers, 4);
  EXPECT_THAT(Refusal("--fanouts 5,5 --layers 3"),
              StartsWith("layers 3: does not fit the 2 numbers of fanouts"));
  EXPECT_EQ(Refusal(""),
            "--fanouts is needed to train, one number per layer\n"
            "give e.g. --fanouts 15,10 for two layers");
}

TEST(TrainFlagsTest, GraphsNeedTheirNumberOfLayers) {
  EXPECT_EQ(Refusal("--task graph"),
            "--layers is needed to train on walks or graphs\n"
            "give e.g. --layers 2");
  const TrainOptions options = Options("--task graph --layers 4");
  EXPECT_EQ(options.model.layers, 4);
  EXPECT_EQ(options.job.seed_kind, SeedKind::kGraph);
  EXPECT_EQ(options.task.kind, TaskKind::kSingle);
  EXPECT_EQ(options.evaluation.kind, InferenceKind::kSampled);
  EXPECT_EQ(Refusal("--task graph --seeds edge --layers 4"),
            "--task graph learns graphs\n"
            "use --seeds graph, or leave out --seeds");
  EXPECT_TRUE(Parsed("--task graph --seeds graph --layers 4").ok());
  EXPECT_EQ(Options("--task graph --layers 4 --inference full").evaluation.kind,
            InferenceKind::kFull);
}

TEST(TrainFlagsTest, AModelMayBeAScript) {
  const TrainOptions options = Options("--model script:m.pt --fanouts 5");
  EXPECT_EQ(options.model.kind, ModelKind::kScript);
  EXPECT_EQ(options.model.script, "m.pt");
  EXPECT_EQ(options.evaluation.kind, InferenceKind::kSampled);
  EXPECT_THAT(Refusal("--model script: --fanouts 5"),
              HasSubstr("no file after script:"));
  EXPECT_THAT(Refusal("--model scripts --fanouts 5"), HasSubstr("--model"));
  for (const char* option :
       {"--hidden 8", "--heads 2", "--aggr sum", "--num-bases 1",
        "--dropout 0.5", "--norm layer", "--gcn-norm full", "--gin-mlp 1",
        "--graph-head none"}) {
    const std::string name(option, std::string(option).find(' '));
    EXPECT_EQ(
        Refusal(std::string("--model script:m.pt --fanouts 5 ") + option),
        name +
            " has no effect on a script\nleave it out, and script the model as "
            "you want it");
  }
}

TEST(TrainFlagsTest, LinksChooseTheirLossByTheirNegatives) {
  const std::string link = "--task link --fanouts 5 ";
  for (const auto& [line, loss, metric] :
       {std::tuple("", LinkLoss::kBce, MetricKind::kRocAuc),
        std::tuple("--negatives binary:2", LinkLoss::kBce, MetricKind::kRocAuc),
        std::tuple("--negatives triplet:2", LinkLoss::kBce,
                   MetricKind::kRocAuc),
        std::tuple("--negatives shared:2", LinkLoss::kSoftmax,
                   MetricKind::kMrr),
        std::tuple("--negatives in-batch", LinkLoss::kSoftmax,
                   MetricKind::kMrr),
        std::tuple("--negatives in-batch --loss bce", LinkLoss::kBce,
                   MetricKind::kRocAuc),
        std::tuple("--negatives triplet:2 --loss softmax", LinkLoss::kSoftmax,
                   MetricKind::kMrr),
        std::tuple("--loss softmax --metric accuracy", LinkLoss::kSoftmax,
                   MetricKind::kAccuracy)}) {
    const TrainOptions options = Options(link + line);
    EXPECT_EQ(options.task.kind, TaskKind::kLink);
    EXPECT_EQ(options.task.loss, loss) << line;
    EXPECT_EQ(options.task.metric, metric) << line;
    EXPECT_EQ(options.task.negatives, options.job.negatives.mode) << line;
    EXPECT_EQ(options.job.seed_kind, SeedKind::kEdge);
  }
}

TEST(TrainFlagsTest, LinksHaveADecoderAndDoNotSeeThemselves) {
  const std::string link = "--task link --fanouts 5 ";
  EXPECT_EQ(Options(link).model.decoder, DecoderKind::kDot);
  EXPECT_EQ(Options(link + "--decoder distmult").model.decoder,
            DecoderKind::kDistMult);
  EXPECT_EQ(Options(link).job.exclude, ExcludeSeedEdges::kReverse);
  EXPECT_EQ(Options(link + "--exclude-seed-edges none").job.exclude,
            ExcludeSeedEdges::kNone);
  EXPECT_EQ(Refusal(link + "--seeds node"),
            "--task link learns edges\nuse --seeds edge, or leave out --seeds");
}

TEST(TrainFlagsTest, LinksAreComparedWithNegatives) {
  const std::string link = "--task link --fanouts 5 ";
  for (const auto& [word, negatives] :
       {std::pair("all", EvalNegatives::kAll),
        std::pair("given", EvalNegatives::kGiven)}) {
    const auto evaluation =
        Options(link + "--eval-negatives " + word).evaluation;
    EXPECT_EQ(evaluation.negatives, negatives);
    EXPECT_EQ(evaluation.drawn, Negatives());
  }
  const auto drawn = Options(link + "--eval-negatives triplet:7").evaluation;
  EXPECT_EQ(drawn.negatives, EvalNegatives::kDrawn);
  EXPECT_EQ(drawn.drawn, (Negatives{NegativeMode::kTriplet, 7}));
  EXPECT_THAT(Refusal(link + "--eval-negatives some"),
              StartsWith("eval_negatives \"some\""));
}

TEST(TrainFlagsTest, EmbeddingsReadNoNeighbours) {
  const TrainOptions options = Options("--task link --model embedding");
  EXPECT_EQ(options.model.kind, ModelKind::kEmbedding);
  EXPECT_EQ(options.model.layers, 0);
  EXPECT_THAT(options.job.fanouts, ElementsAre(0));
  EXPECT_EQ(Refusal("--task link --model embedding --fanouts 5"),
            "--model embedding reads no neighbours\nleave out --fanouts");
  EXPECT_EQ(Refusal("--model embedding"),
            "--model embedding is for --task link, not for --task single\n"
            "use another --model");
}

TEST(TrainFlagsTest, NamesOptionsOfAnotherTask) {
  for (const char* option :
       {"--decoder dot", "--loss bce", "--eval-negatives all"}) {
    const std::string name(option, std::string(option).find(' '));
    EXPECT_EQ(Refusal(std::string("--fanouts 5 --task multi ") + option),
              name + " is for --task link only, not for --task multi");
  }
  for (const char* task : {"multi", "binary", "regression", "link"}) {
    EXPECT_EQ(Refusal(std::string("--fanouts 5 --classes 3 --task ") + task),
              std::string("--classes is for --task single and graph, not for "
                          "--task ") +
                  task + "\nleave it out");
  }
  EXPECT_EQ(Options("--task graph --layers 2 --classes 3").classes, 3);
  EXPECT_THAT(Refusal("--fanouts 5 --metric mrr"),
              StartsWith("metric \"mrr\": does not fit the task single"));
}

TEST(TrainFlagsTest, SaysWhatIsNotSupportedYet) {
  const absl::Status status = Parsed("--fanouts 5 --device tpu").status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(status.message(),
            "--device tpu is not supported in this version\nuse --device cpu "
            "or cuda or auto");
  EXPECT_TRUE(Parsed("--fanouts 5 --device cpu --backend gloo").ok());
}

TEST(TrainFlagsTest, TheCpuHasNeitherNcclNorGpus) {
  for (const char* device : {"", " --device cpu"}) {
    const absl::Status status =
        Parsed(std::string("--fanouts 5 --backend nccl") + device).status();
    EXPECT_TRUE(IsUsageError(status)) << status;
    EXPECT_EQ(status.message(),
              "--backend nccl adds up gradients between GPUs, which --device "
              "cpu does not use\nuse --backend gloo, or --device cuda");
  }
  const absl::Status status =
      Parsed("--fanouts 5 --workers gpus --device cpu").status();
  EXPECT_TRUE(IsUsageError(status)) << status;
  EXPECT_EQ(status.message(),
            "--workers gpus starts a trainer for each GPU, which --device cpu "
            "does not use\ngive a number of --workers, or leave --device out");
  for (const char* line :
       {"--device cuda --backend nccl", "--device auto --backend nccl",
        "--device cuda --backend gloo", "--workers gpus --backend nccl",
        "--workers gpus --device auto"}) {
    EXPECT_TRUE(Parsed(std::string("--fanouts 5 ") + line).ok()) << line;
  }
}

TEST(TrainFlagsTest, NumbersHaveLimits) {
  for (const char* line :
       {"--hidden 0", "--layers -1", "--layers 256", "--heads 0",
        "--num-bases -1", "--gin-mlp 0", "--gin-mlp 3", "--classes -1",
        "--weight-decay -1", "--eval-batch-size 0", "--workers 0",
        "--workers all", "--workers 3e9", "--workers 3000000000",
        "--backend mpi", "--task words", "--norm words", "--eval-ranks 1"}) {
    EXPECT_TRUE(
        absl::IsUnknown(Parsed(std::string("--fanouts 5 ") + line).status()))
        << line;
  }
  EXPECT_TRUE(Parsed("--fanouts 5 --hidden 1 --heads 1 --gin-mlp 1 "
                     "--eval-batch-size 1")
                  .ok());
}

TEST(TrainFlagsTest, ChecksWhatNeedsNoGraph) {
  EXPECT_EQ(ReasonOf(Parsed("--fanouts 5 --resume").status()),
            "no_checkpoint_folder");
  EXPECT_THAT(Refusal("--fanouts 5 --optimizer rprop"),
              HasSubstr("--optimizer"));
}

TEST(TrainFlagsTest, WorkersAreANumberOrThatOfTheGpus) {
  const auto expect = [](const char* line, int workers, bool gpus,
                         const char* device,
                         std::optional<Backend> backend = std::nullopt) {
    SCOPED_TRACE(line);
    CLI::App app;
    TrainFlags flags;
    flags.AddTo(app);
    app.parse(line);
    EXPECT_EQ(flags.has_workers(), workers > 0 || gpus);
    EXPECT_EQ(flags.workers(), workers);
    EXPECT_EQ(flags.worker_for_each_gpu(), gpus);
    EXPECT_EQ(flags.device(), device);
    EXPECT_EQ(flags.backend(), backend);
  };
  expect("", 0, false, "cpu");
  expect("--workers 3", 3, false, "cpu");
  expect("--workers 3 --device auto", 3, false, "auto");
  expect("--workers gpus", 0, true, "cuda");
  expect("--workers gpus --device auto", 0, true, "auto");
  expect("--workers gpus --device cpu", 0, true, "cpu");
  expect("--device cuda --backend gloo", 0, false, "cuda", Backend::kGloo);
  expect("--backend nccl", 0, false, "cpu", Backend::kNccl);
}

TEST(TrainFlagsTest, WorkersAndASecretExcludeEachOther) {
  const auto parse = [](TrainFlags& flags, const char* line) {
    CLI::App app;
    flags.AddTo(app);
    app.parse(line);
  };
  TrainFlags none, some, secret, both;
  parse(none, "");
  EXPECT_EQ(none.workers(), 0);
  EXPECT_EQ(none.rendezvous_secret(), "");
  parse(some, "--workers 3");
  EXPECT_EQ(some.workers(), 3);
  parse(secret, "--rendezvous-secret file");
  EXPECT_EQ(secret.rendezvous_secret(), "file");
  EXPECT_THROW(parse(both, "--workers 3 --rendezvous-secret file"),
               CLI::ExcludesError);
}

// The advice that goes with each reason, in part.
TEST(TrainAdviceTest, NamesWhatToChange) {
  const std::vector<std::pair<std::string_view, std::string_view>> expected = {
      {"batch_too_large", "a smaller --batch-size, --fanouts or --hidden"},
      {"batch_without_features", "do not use --no-features"},
      {"checkpoint_not_written", "restart with --resume"},
      {"classes_with_gaps", "say with --classes how many"},
      {"earlier_checkpoint", "give --resume to continue that run"},
      {"edge_types_unread", "--edges SRC__NAME__DST=F.npy"},
      {"empty_split", "name another with --split"},
      {"epoch_without_steps", "leave out --drop-last"},
      {"evaluated_edges_in_graph",
       "--edge-split-fractions, which takes them out"},
      {"evaluation_batch_too_large", "a smaller --eval-batch-size"},
      {"evaluation_out_of_device_memory", "or --inference sampled"},
      {"evaluation_out_of_memory", "--hidden, or fewer processes"},
      {"full_inference_in_time", "--inference sampled with --temporal"},
      {"full_inference_of_script", "use --inference sampled"},
      {"gpu_has_failed", "`nvidia-smi` and the kernel's log"},
      {"gpu_is_busy", "end the process that has it for itself"},
      {"gpu_is_full", "end processes that use its memory"},
      {"heads_do_not_divide", "a multiple of --heads for --hidden"},
      {"incomplete_group", "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"},
      {"inference_too_large", "--inference sampled, or a smaller --hidden"},
      {"label_beyond_classes", "a larger --classes"},
      {"labels_and_negatives", "without --labels or without --negatives"},
      {"labels_are_not_binary", "--task single for classes"},
      {"labels_are_not_classes", "--task regression for others"},
      {"labels_name_negatives", "leave out --negatives"},
      {"loss_not_finite", "a smaller --lr"},
      {"loss_not_finite_in_bf16", "--precision float32"},
      {"loss_without_negatives",
       "--negatives triplet:K, shared:K or in-batch, or --loss bce"},
      {"model_too_large", "labels with fewer classes"},
      {"no_checkpoint", "the folder of an earlier run with --checkpoint"},
      {"no_checkpoint_folder", "name the folder that checkpoints are in"},
      {"no_edge_features", "--edge-features F.npy"},
      {"no_embeddings", "--output logits"},
      {"no_features", "--features F.npy"},
      {"no_given_negatives", "--eval-negatives triplet:100, or millrace split"},
      {"no_gpu", "or use --device cpu"},
      {"no_labels", "--labels F.npy"},
      {"no_negatives", "--negatives binary:1, triplet:K, shared:K or in-batch"},
      {"nodes_without_times", "--node-times F.npy"},
      {"order_of_edges", "--seeds-file F.npy, [n, 2], and --no-shuffle"},
      {"order_without_times", "times with --seeds-file F.npy, [n, 2]"},
      {"other_batch_size", "--global-batch-size is divided by"},
      {"other_depth", "--fanouts and --eval-fanouts, or leave out --layers"},
      {"other_eval_negatives", "--eval-negatives triplet:100"},
      {"other_run", "another --checkpoint folder"},
      {"other_secret", "the same --rendezvous-secret"},
      {"out_of_device_memory", "a smaller --batch-size"},
      {"out_of_memory", "fewer processes on this host"},
      {"predictions_too_large", "leave out --predict"},
      {"rank_ended", "restart with --resume"},
      {"rank_lost", "restart the group with --resume"},
      {"ranks_have_other_splits", "the same splits to all copies"},
      {"ranks_on_other_devices", "the same --device and --backend"},
      {"ranks_read_other_stores", "the same --store, or --servers"},
      {"script_without_features", "or use another --model"},
      {"seeds_without_edge_types", "--pairs F --edge-types F"},
      {"seeds_without_neighbors",
       "--direction out, or import with --add-reverse"},
      {"several_labels_per_node", "--task multi or regression"},
      {"several_values_per_node", "use --task multi"},
      {"shared_gpu", "give each rank of a host its own LOCAL_RANK"},
      {"tensor_not_saved", "leave out --checkpoint"},
      {"too_few_gpus", "at most one rank for each GPU"},
      {"too_many_embeddings", "or use a smaller --hidden"},
      {"unlabelled_split", "NaN and negative labels count as none"},
      {"unreadable_checkpoint", "name another --checkpoint folder"},
      {"weights_of_other_model", "this --model, --layers and --norm"}};
  ASSERT_EQ(TrainAdvice().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(TrainAdvice()[i].reason.word, expected[i].first);
    EXPECT_NE(TrainAdvice()[i].text.find(expected[i].second),
              std::string_view::npos)
        << expected[i].first;
  }
}

TEST(TrainAdviceTest, EachReasonHasOne) {
  std::string before;
  for (const ReasonAdvice& row : TrainAdvice()) {
    EXPECT_LT(before, row.reason.word);  // none occurs twice
    before = row.reason.word;
  }
}

}  // namespace
}  // namespace millrace::testing
