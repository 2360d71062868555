// SPDX-License-Identifier: Apache-2.0
// Metrics and predictions of nodes, compared with those of the whole graph's
// logits.
#include "client/train/eval/node_evaluator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/tensor/torch_status.h"
#include "common/base/field_error.h"
#include "tests/support/limited_accelerator.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::StartsWith;

constexpr int64_t kGraphNodes = 90;

class NodeEvaluatorTest : public ::testing::Test {
 protected:
  NodeEvaluatorTest() {
    ModelConfig config;
    config.in = 6;
    config.hidden = 8;
    config.out = 4;
    config.seed = 5;
    model_ = Model::Create(config).value();
    job_.fanouts = {-1, -1};
    options_.inference.chunk = 13;
    for (const auto& [split, table] : {std::pair("train", &tables_.train),
                                       std::pair("valid", &tables_.valid)}) {
      *table = ReadSeedTable(source_, job_, TaskKind::kSingle, split).value();
    }
    RunRanks(1, [&](Collectives& alone) {
      FullInference inference(source_, job_, *model_, alone, {});
      logits_ = inference.RunForAll(2).value();
      hidden_ = inference.RunForAll(1).value();
    });
  }

  // The share of seeds whose largest logit is that of their class.
  double AccuracyOf(int64_t begin, int64_t end) const {
    int64_t right = 0;
    for (int64_t v = begin; v < end; ++v) {
      right += at::argmax(logits_[v]).item().toLong() == v % 4;
    }
    return static_cast<double>(right) / static_cast<double>(end - begin);
  }

  NodeEvaluator Make(Collectives& collectives) const {
    return NodeEvaluator(source_, job_, *model_, collectives, tables_,
                         options_);
  }

  // Nodes 0 to 39 are the train split, 40 to 59 valid.
  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(kGraphNodes, 40), "node_evaluator", 2);
  std::unique_ptr<Model> model_;
  JobSpec job_;
  EvaluationOptions options_;
  NodeEvaluator::Tables tables_;
  at::Tensor logits_, hidden_;
};

TEST_F(NodeEvaluatorTest, CountsEachSplitOverAllRanks) {
  for (const int world : {1, 2}) {
    for (const bool all_ranks : {true, false}) {
      options_.inference.all_ranks = all_ranks;
      RunRanks(world, [&](Collectives& collectives) {
        const auto metrics = Make(collectives).Run();
        ASSERT_TRUE(metrics.ok()) << metrics.status();
        EXPECT_DOUBLE_EQ(metrics->train.value(), AccuracyOf(0, 40));
        EXPECT_DOUBLE_EQ(metrics->valid.value(), AccuracyOf(40, 60));
        EXPECT_EQ(metrics->test, std::nullopt);
      });
    }
  }
}

TEST_F(NodeEvaluatorTest, SampledInferenceLeavesOutTheTrainSplit) {
  options_.kind = InferenceKind::kSampled;
  for (const int world : {1, 2}) {
    for (const bool all_ranks : {true, false}) {
      options_.inference.all_ranks = all_ranks;
      RunRanks(world, [&](Collectives& collectives) {
        const auto metrics = Make(collectives).Run();
        ASSERT_TRUE(metrics.ok()) << metrics.status();
        EXPECT_EQ(metrics->train, std::nullopt);
        EXPECT_DOUBLE_EQ(metrics->valid.value(), AccuracyOf(40, 60));
      });
    }
  }
}

TEST_F(NodeEvaluatorTest, AsksTheAcceleratorForTheMemoryOfEachBatch) {
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    options_.kind = kind;
    RunRanks(1, [&](Collectives& alone) {
      LimitedAccelerator accelerator;
      const auto run = [&] {
        return NodeEvaluator(source_, job_, *model_, alone, tables_, options_,
                             accelerator)
            .Run()
            .status();
      };
      EXPECT_TRUE(run().ok());
      // At least the output of the first layer for the seeds of a batch.
      EXPECT_GE(accelerator.asked, 13 * 8 * sizeof(float));
      EXPECT_LT(accelerator.asked, kGraphNodes * 64 * sizeof(float));
      accelerator.limit = accelerator.asked / 2 - 1;
      const absl::Status status = run();
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(ReasonOf(status), "evaluation_batch_too_large");
      EXPECT_THAT(std::string(status.message()),
                  ::testing::MatchesRegex(
                      "(inference on|evaluation of) a batch of [0-9]+ .* is "
                      "too much"));
    });
  }
}

TEST(OfEvaluationTest, GivesErrorsOfMemoryReasonsOfTheirOwn) {
  EXPECT_EQ(ReasonOf(OfEvaluation(OutOfMemory("x"))),
            "evaluation_out_of_memory");
  EXPECT_EQ(ReasonOf(OfEvaluation(OutOfDeviceMemory("x", ""))),
            "evaluation_out_of_device_memory");
  const absl::Status other = WithReason(absl::NotFoundError("x"), Reason{"y"});
  EXPECT_EQ(OfEvaluation(other), other);
}

TEST_F(NodeEvaluatorTest, PredictsARowForEveryNode) {
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    options_.kind = kind;
    for (const bool all_ranks : {true, false}) {
      options_.inference.all_ranks = all_ranks;
      RunRanks(2, [&](Collectives& collectives) {
        const auto rows = Make(collectives).Predict(/*embeddings=*/false);
        ASSERT_TRUE(rows.ok()) << rows.status();
        EXPECT_TRUE(at::allclose(*rows, logits_, 1e-4, 1e-5));
      });
    }
  }
}

TEST_F(NodeEvaluatorTest, EmbeddingsAreWhatTheLastLayerReads) {
  RunRanks(1, [&](Collectives& alone) {
    const auto rows = Make(alone).Predict(/*embeddings=*/true);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->size(1), 8);
    EXPECT_TRUE(at::allclose(*rows, hidden_, 1e-4, 1e-5));
  });
}

TEST_F(NodeEvaluatorTest, ChecksTheMemoryOfPredictions) {
  options_.kind = InferenceKind::kSampled;
  options_.inference.ranks_on_host = 1 << 30;
  RunRanks(1, [&](Collectives& alone) {
    EXPECT_TRUE(Make(alone).CheckMemory(/*predicts=*/false).ok());
    absl::Status status = Make(alone).CheckMemory(/*predicts=*/true);
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    // 90 * 4 * 4 * 2^30 bytes.
    EXPECT_THAT(std::string(status.message()),
                StartsWith("predicting 90 nodes and 4 columns in 1073741824 "
                           "trainers needs 1.4 TiB of memory"));
    EXPECT_EQ(ReasonOf(status), "predictions_too_large");
    options_.kind = InferenceKind::kFull;
    status = Make(alone).CheckMemory(/*predicts=*/false);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("full inference with layers of 90 nodes in "
                           "1073741824 trainers needs "));
    EXPECT_EQ(ReasonOf(status), "inference_too_large");
    options_.inference.ranks_on_host = 1;
    for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
      options_.kind = kind;
      EXPECT_TRUE(Make(alone).CheckMemory(/*predicts=*/true).ok());
    }
  });
}

TEST(SampledJobTest, LeavesOutWhatOnlyTrainingNeeds) {
  JobSpec trained;
  trained.train_graph = "train";
  trained.drop_last = true;
  trained.seed_order = SeedOrder::kLocal;
  trained.fanouts = {5, 3};
  trained.relation_fanouts = {{"a__b__c", {1, 2}}};
  trained.seed = 7;
  JobSpec want = trained;
  want.train_graph = "";
  want.shuffle = want.drop_last = false;
  want.seed_order = SeedOrder::kGlobal;
  EXPECT_EQ(SampledJob(trained, {}), want);
  EvaluationOptions options;
  options.fanouts = {9, 9};
  want.fanouts = {9, 9};
  want.relation_fanouts.clear();
  EXPECT_EQ(SampledJob(trained, options), want);
}

TEST_F(NodeEvaluatorTest, ErrorsOfItsJobNameItsOptions) {
  const Manifest& manifest = source_->manifest();
  EXPECT_TRUE(CheckEvaluationJob(job_, manifest).ok());
  JobSpec job = job_;
  job.fanouts = {-2, 1};
  absl::Status status = CheckEvaluationJob(job, manifest);
  EXPECT_EQ(GetFieldError(status)->field, "eval_fanouts") << status;
  job = job_;
  job.negatives = {NegativeMode::kTriplet, 3};
  status = CheckEvaluationJob(job, manifest);
  const FieldError error = GetFieldError(status).value();
  EXPECT_TRUE(error.field == "eval_negatives" ||
              error.other_field == "eval_negatives")
      << status;
  job = job_;
  job.batch_size = 0;
  EXPECT_EQ(GetFieldError(CheckEvaluationJob(job, manifest))->field,
            "batch_size");
}

TEST(SharedBatchesTest, RankZeroMayDoAllTheWork) {
  RunRanks(2, [](Collectives& collectives) {
    InferenceOptions inference = {.prefetch_batches = 3, .prefetch_bytes = 99};
    LoaderOptions options = SharedBatches(inference, collectives);
    EXPECT_EQ(options.rank, collectives.rank());
    EXPECT_EQ(options.world, 2);
    EXPECT_EQ(options.prefetch_batches, 3);
    EXPECT_EQ(options.prefetch_bytes, 99);
    inference.all_ranks = false;
    options = SharedBatches(inference, collectives);
    EXPECT_EQ(options.rank, 0);
    EXPECT_EQ(options.world, 1);
  });
}

}  // namespace
}  // namespace millrace::testing
