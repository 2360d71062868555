// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace millrace::testing {
namespace {

using ::testing::IsSupersetOf;

// Options none of which has its default.
TrainOptions OtherOptions() {
  TrainOptions options;
  options.feature_dtype = DType::kFloat16;
  options.model.kind = ModelKind::kGat;
  options.model.hidden = 32;
  options.model.layers = 3;
  options.model.dropout = 0.25;
  options.model.norm = NormKind::kLayer;
  options.model.gcn_norm = GcnNorm::kSampled;
  options.model.heads = 4;
  options.model.aggregation = Aggregation::kMax;
  options.model.bases = 5;
  options.model.gin_mlp = 1;
  options.model.precision = Precision::kBfloat16;
  options.model.readout = Aggregation::kMean;
  options.model.graph_head = false;
  options.model.seed = 9;
  options.task.kind = TaskKind::kMulti;
  options.optimizer.kind = OptimizerKind::kAdamW;
  return options;
}

RunIdentity Defaults() {
  return {
      {"--feature-dtype", ""}, {"--model", "sage"},      {"--hidden", "256"},
      {"--layers", "2"},       {"--dropout", "0"},       {"--norm", "none"},
      {"--gcn-norm", "full"},  {"--heads", "1"},         {"--aggr", "mean"},
      {"--num-bases", "0"},    {"--gin-mlp", "2"},       {"--readout", "sum"},
      {"--graph-head", "mlp"}, {"--task", "single"},     {"--model-seed", "1"},
      {"--optimizer", "adam"}, {"--batch-size", "1024"}, {"--split", "train"}};
}

RunIdentity Others() {
  return {{"--feature-dtype", "float16"},
          {"--model", "gat"},
          {"--hidden", "32"},
          {"--layers", "3"},
          {"--dropout", "0.25"},
          {"--norm", "layer"},
          {"--gcn-norm", "sampled"},
          {"--heads", "4"},
          {"--aggr", "max"},
          {"--num-bases", "5"},
          {"--gin-mlp", "1"},
          {"--readout", "mean"},
          {"--graph-head", "none"},
          {"--precision", "bf16"},
          {"--task", "multi"},
          {"--model-seed", "9"},
          {"--optimizer", "adamw"}};
}

TEST(RunIdentityTest, ShowsWhatARunMustHaveInCommonWithItsCheckpoint) {
  EXPECT_THAT(IdentifyRun({}), IsSupersetOf(Defaults()));
  EXPECT_THAT(IdentifyRun(OtherOptions()), IsSupersetOf(Others()));
  EXPECT_FALSE(IdentifyRun({}).contains("--loss"));
  EXPECT_FALSE(IdentifyRun({}).contains("--decoder"));
}

TEST(RunIdentityTest, KeysAreThoseOfCheckpoints) {
  for (const auto& [field, key] :
       {std::pair("batch_size", "--batch-size"),
        std::pair("seed_kind", "--seeds"), std::pair("seeds", "--seeds-file"),
        std::pair("bases", "--num-bases"), std::pair("aggregation", "--aggr"),
        std::pair("weight_decay", "--weight-decay"),
        std::pair("hidden", "--hidden")}) {
    EXPECT_EQ(IdentityKey(field), key);
    EXPECT_EQ(IdentityField(key), field);
  }
  EXPECT_EQ(IdentityField("dataset fingerprint"), "");
}

TEST(RunIdentityTest, KnowsEveryWord) {
  TrainOptions options;
  options.model.norm = NormKind::kBatch;
  options.model.aggregation = Aggregation::kSum;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.task.kind = TaskKind::kLink;
  EXPECT_THAT(IdentifyRun(options),
              IsSupersetOf(RunIdentity{{"--norm", "batch"},
                                       {"--aggr", "sum"},
                                       {"--optimizer", "sgd"},
                                       {"--task", "link"},
                                       {"--loss", "bce"},
                                       {"--decoder", "dot"}}));
  options.task.loss = LinkLoss::kSoftmax;
  options.model.decoder = DecoderKind::kDistMult;
  EXPECT_THAT(IdentifyRun(options),
              IsSupersetOf(RunIdentity{{"--loss", "softmax"},
                                       {"--decoder", "distmult"}}));
}

// The first two have the digits that tell them apart from their neighbours.
RunIdentity GroupDefaults() {
  return {{"--lr", "0.003"},
          {"--weight-decay", "0"},
          {"--lr-schedule", "constant"},
          {"--epochs", "10"},
          {"--patience", "0"},
          {"--metric", "accuracy"},
          {"--classes", "0"},
          {"--inference", "full"},
          {"--eval-fanouts", ""},
          {"--eval-batch-size", "4096"},
          {"--eval-ranks", "all"},
          {"--eval-negatives", "default, full"},
          {"--eval-every", "1"},
          {"--valid-split", ""},
          {"--test-split", ""},
          {"--checkpoint", "not given"},
          {"--checkpoint-every", "0"},
          {"--keep-best", "no"},
          {"--consumed-log", "not given"},
          {"--seeds-file", "not given"},
          {"--order", "not given"},
          {"--init", "not given"},
          {"--predict", "not given"},
          {"--output", "logits"}};
}

TEST(RunIdentityTest, ShowsWhatRanksMustHaveInCommon) {
  EXPECT_THAT(IdentifyGroup({}), IsSupersetOf(Defaults()));
  EXPECT_THAT(IdentifyGroup({}), IsSupersetOf(GroupDefaults()));
  TrainOptions options = OtherOptions();
  options.model.dropout = 0.12345678901234568;
  options.optimizer.lr = 0.1234567890123;
  options.optimizer.weight_decay = 1e-9;
  options.lr_schedule = "cosine";
  options.epochs = 3;
  options.patience = 4;
  options.task.metric = MetricKind::kF1Macro;
  options.classes = 7;
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {5, -1};
  options.evaluation.inference.chunk = 17;
  options.evaluation.inference.all_ranks = false;
  options.eval_every = 6;
  options.valid_split = "v";
  options.test_split = "t";
  options.checkpoint = "c";
  options.checkpoint_every = 8;
  options.keep_best = true;
  options.consumed_log = "l";
  options.seeds.emplace();
  options.order = "o";
  options.init = "i";
  options.predict = "p";
  options.predict_embeddings = true;
  EXPECT_THAT(IdentifyGroup(options),
              IsSupersetOf(RunIdentity{{"--dropout", "0.12345678901234568"},
                                       {"--hidden", "32"},
                                       {"--lr", "0.1234567890123"},
                                       {"--weight-decay", "1e-09"},
                                       {"--lr-schedule", "cosine"},
                                       {"--epochs", "3"},
                                       {"--patience", "4"},
                                       {"--metric", "f1-macro"},
                                       {"--classes", "7"},
                                       {"--inference", "sampled"},
                                       {"--eval-fanouts", "5,-1"},
                                       {"--eval-batch-size", "17"},
                                       {"--eval-ranks", "0"},
                                       {"--eval-negatives", "default, sampled"},
                                       {"--eval-every", "6"},
                                       {"--valid-split", "v"},
                                       {"--test-split", "t"},
                                       {"--checkpoint", "given"},
                                       {"--checkpoint-every", "8"},
                                       {"--keep-best", "yes"},
                                       {"--consumed-log", "given"},
                                       {"--seeds-file", "given"},
                                       {"--order", "given"},
                                       {"--init", "given"},
                                       {"--predict", "given"},
                                       {"--output", "embeddings"}}));
}

TEST(RunIdentityTest, NegativesOfEvaluationHaveTheWordsOfOptions) {
  EvaluationOptions evaluation;
  EXPECT_EQ(EvalNegativesText(evaluation), "default, full");
  evaluation.kind = InferenceKind::kSampled;
  EXPECT_EQ(EvalNegativesText(evaluation), "default, sampled");
  evaluation.negatives = EvalNegatives::kAll;
  EXPECT_EQ(EvalNegativesText(evaluation), "all");
  evaluation.negatives = EvalNegatives::kGiven;
  EXPECT_EQ(EvalNegativesText(evaluation), "given");
  evaluation.negatives = EvalNegatives::kDrawn;
  evaluation.drawn = {NegativeMode::kTriplet, 7};
  EXPECT_EQ(EvalNegativesText(evaluation), "triplet:7");
}

}  // namespace
}  // namespace millrace::testing
