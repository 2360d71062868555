// SPDX-License-Identifier: Apache-2.0
// Whole runs on a device whose memory the host cannot touch: their losses,
// metrics, predictions and checkpoints have the bits of runs on the CPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/file/file.h"
#include "tests/support/pretend_accelerator.h"
#include "tests/train/script_support.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

// What a run leaves behind.
struct Result {
  std::vector<std::string> lines;  // its metrics, without times
  std::string checkpoint, prediction;
};

std::string WithoutTimes(MetricsRecord record) {
  record.seconds = record.wait_seconds = record.copy_seconds = 0;
  record.compute_seconds = record.eval_seconds = record.cpu_seconds = 0;
  return MetricsLine(record);
}

std::string BytesOf(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? ReadFile(file, 1 << 24).value() : "";
}

// Trains in two ranks with a checkpoint in `folder`.
Result Train(const std::shared_ptr<BatchSource>& source, TrainOptions options,
             const std::filesystem::path& folder, Accelerator& accelerator) {
  options.checkpoint = (folder / "run").string();
  if (!options.predict.empty()) options.predict = (folder / "rows.npy").string();
  options.log_every = 1;
  Result result;
  RunRanks(2, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source, collectives, options, accelerator);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status run = (*trainer)->Run();
    ASSERT_TRUE(run.ok()) << run;
    if (collectives.rank() != 0) return;
    for (const MetricsRecord& record : (*trainer)->history()) {
      result.lines.push_back(WithoutTimes(record));
    }
  });
  result.checkpoint = BytesOf(folder / "run" / "last.pt");
  result.prediction = BytesOf(folder / "rows.npy");
  return result;
}

void ExpectSameBits(const std::shared_ptr<BatchSource>& source,
                    const TrainOptions& options) {
  const std::filesystem::path folder = TestDirectory("pretend");
  std::filesystem::create_directory(folder / "cpu");
  std::filesystem::create_directory(folder / "pretend");
  PretendAccelerator pretend;
  const Result want = Train(source, options, folder / "cpu", CpuAccelerator());
  const Result got = Train(source, options, folder / "pretend", pretend);
  EXPECT_GE(want.lines.size(), 2u);
  EXPECT_FALSE(want.checkpoint.empty());
  EXPECT_EQ(got.lines, want.lines);
  EXPECT_EQ(got.checkpoint, want.checkpoint);
  EXPECT_EQ(got.prediction, want.prediction);
}

class PretendModelTest : public ::testing::TestWithParam<ModelKind> {};

TrainOptions RunOf(ModelKind kind) {
  TrainOptions options = SmallRun();
  options.model.kind = kind;
  options.model.heads = 2;
  options.model.dropout = 0.5;
  options.model.norm = NormKind::kBatch;
  options.predict = "rows";
  return options;
}

TEST_P(PretendModelTest, TrainsLikeTheCpu) {
  ExpectSameBits(Serve(ClassGraph(120, 60), "pretend_model"),
                 RunOf(GetParam()));
}

TEST_P(PretendModelTest, SampledEvaluationIsLikeTheCpus) {
  TrainOptions options = RunOf(GetParam());
  options.evaluation.kind = InferenceKind::kSampled;
  options.optimizer.kind = OptimizerKind::kSgd;
  ExpectSameBits(Serve(ClassGraph(120, 60), "pretend_sampled"), options);
}

INSTANTIATE_TEST_SUITE_P(Models, PretendModelTest,
                         ::testing::Values(ModelKind::kSage, ModelKind::kGcn,
                                           ModelKind::kGat, ModelKind::kGatv2,
                                           ModelKind::kGin),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

class PretendTypedModelTest : public ::testing::TestWithParam<ModelKind> {};

// Nodes without features have embeddings.
TEST_P(PretendTypedModelTest, TrainsLikeTheCpu) {
  TrainOptions options = RunOf(GetParam());
  options.job.seed_type = "paper";
  options.optimizer.kind = OptimizerKind::kAdamW;
  options.optimizer.weight_decay = 0.01;
  ExpectSameBits(Serve(PaperGraph(120, 60), "pretend_typed"), options);
}

INSTANTIATE_TEST_SUITE_P(Models, PretendTypedModelTest,
                         ::testing::Values(ModelKind::kSage, ModelKind::kGat,
                                           ModelKind::kRgcn),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

}  // namespace
}  // namespace millrace::testing
