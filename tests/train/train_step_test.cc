// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_step.h"

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "client/train/label_objective.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

ModelConfig Config(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.in = 6;
  config.hidden = 8;
  config.out = 4;
  return config;
}

// The mean gradient of a step in which rank r has batches[r], if any.
at::Tensor GradientOf(const std::vector<Batch>& batches, int world,
                      const ModelConfig& config) {
  at::Tensor gradient;
  RunRanks(world, [&](Collectives& collectives) {
    const auto model = Model::Create(config).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const auto rank = static_cast<size_t>(collectives.rank());
    std::optional<Minibatch> minibatch;
    if (rank < batches.size()) {
      minibatch = MakeMinibatch(batches[rank], *model).value();
    }
    const auto sums =
        step.Run(minibatch.has_value() ? &*minibatch : nullptr, {});
    ASSERT_TRUE(sums.ok()) << sums.status();
    if (rank == 0) gradient = step.gradient().clone();
  });
  return gradient;
}

class TrainStepTest : public ::testing::TestWithParam<ModelKind> {};

TEST_P(TrainStepTest, TwoRanksHaveTheGradientOfOneWithBothBatches) {
  const auto source = Serve(ClassGraph(100, 30), "gradient");
  JobSpec job;
  job.fanouts = {-1, -1};
  // The 30 seeds make batches of 20 and 10, so a mean of means would be wrong.
  job.batch_size = 20;
  const std::vector<Batch> two = AllBatches(source, job);
  job.batch_size = 30;
  const std::vector<Batch> one = AllBatches(source, job);
  const at::Tensor want = GradientOf(one, 1, Config(GetParam()));
  const at::Tensor got = GradientOf(two, 2, Config(GetParam()));
  EXPECT_GT(want.abs().max().item().toDouble(), 1e-3);
  EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6));
}

TEST_P(TrainStepTest, ARankWithoutABatchChangesNothing) {
  const auto source = Serve(ClassGraph(100, 30), "without_batch");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  EXPECT_TRUE(GradientOf(batches, 1, Config(GetParam()))
                  .equal(GradientOf(batches, 3, Config(GetParam()))));
}

INSTANTIATE_TEST_SUITE_P(Models, TrainStepTest,
                         ::testing::Values(ModelKind::kSage, ModelKind::kGcn),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

TEST(TrainStepTest, AveragesRunningStatisticsBySeeds) {
  const auto source = Serve(ClassGraph(100, 30), "buffers");
  JobSpec job;
  job.fanouts = {2, 2};
  job.batch_size = 20;
  const std::vector<Batch> batches = AllBatches(source, job);
  ASSERT_EQ(batches.size(), 2u);
  ModelConfig config = Config(ModelKind::kSage);
  config.norm = NormKind::kBatch;
  std::vector<at::Tensor> before(2), after(2);
  RunRanks(2, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    const auto model = Model::Create(config).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const Minibatch minibatch = MakeMinibatch(batches[rank], *model).value();
    ASSERT_TRUE(step.Run(&minibatch, {}).ok());
    before[rank] = model->parameters().buffers()[0].tensor.clone();
    ASSERT_TRUE(step.AverageBuffers().ok());
    after[rank] = model->parameters().buffers()[0].tensor.clone();
  });
  EXPECT_TRUE(after[0].equal(after[1]));
  EXPECT_TRUE(at::allclose(after[0], (before[0] * 20 + before[1] * 10) / 30));
}

TEST(TrainStepTest, ARankWithoutABatchDoesNotContribute) {
  const auto source = Serve(ClassGraph(100, 30), "buffers_of_one");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  ModelConfig config = Config(ModelKind::kSage);
  config.norm = NormKind::kBatch;
  std::vector<at::Tensor> before(2), after(2);
  RunRanks(2, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    const auto model = Model::Create(config).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    std::optional<Minibatch> minibatch;
    if (rank == 0) minibatch = MakeMinibatch(batches[0], *model).value();
    ASSERT_TRUE(
        step.Run(minibatch.has_value() ? &*minibatch : nullptr, {}).ok());
    const at::Tensor buffer = model->parameters().buffers()[0].tensor;
    if (rank == 1) buffer.fill_(std::nan(""));
    before[rank] = buffer.clone();
    ASSERT_TRUE(step.AverageBuffers().ok());
    after[rank] = buffer.clone();
  });
  EXPECT_TRUE(at::allclose(after[0], before[0]));
  EXPECT_TRUE(after[1].equal(after[0]));
}

}  // namespace
}  // namespace millrace::testing
