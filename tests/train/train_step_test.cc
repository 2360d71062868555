// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/train/label_objective.h"
#include "common/base/field_error.h"
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

// A step of two ranks, on batches of 20 and 10 seeds, of a model with running
// statistics.
class RunningStatisticsTest : public ::testing::Test {
 protected:
  RunningStatisticsTest() {
    JobSpec job;
    job.fanouts = {2, 2};
    job.batch_size = 20;
    batches_ = AllBatches(source_, job);
    config_.norm = NormKind::kBatch;
  }

  // Calls `use` on both ranks after the step.
  void AfterOneStep(
      const std::function<void(Model&, TrainStep&, int rank)>& use) const {
    RunRanks(2, [&](Collectives& collectives) {
      const int rank = collectives.rank();
      const auto model = Model::Create(config_).value();
      const NodeObjective objective{Task()};
      TrainStep step(*model, collectives, objective);
      const Minibatch minibatch = MakeMinibatch(batches_[rank], *model).value();
      ASSERT_TRUE(step.Run(&minibatch, {}).ok());
      use(*model, step, rank);
    });
  }

  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(100, 30), "statistics");
  std::vector<Batch> batches_;
  ModelConfig config_ = Config(ModelKind::kSage);
};

TEST_F(RunningStatisticsTest, WholeNumbersAreRounded) {
  AfterOneStep([](Model& model, TrainStep& step, int rank) {
    const std::vector<NamedTensor>& buffers = model.parameters().buffers();
    const auto count = std::find_if(buffers.begin(), buffers.end(),
                                    [](const NamedTensor& buffer) {
                                      return !buffer.tensor.is_floating_point();
                                    });
    ASSERT_NE(count, buffers.end());
    // The mean is 40 / 30.
    count->tensor.fill_(rank == 0 ? 1 : 2);
    EXPECT_EQ(
        step.MeanBuffers().value()[count - buffers.begin()].item().toLong(), 1);
    // The mean is 50 / 30.
    count->tensor.fill_(rank == 0 ? 2 : 1);
    EXPECT_EQ(
        step.MeanBuffers().value()[count - buffers.begin()].item().toLong(), 2);
  });
}

TEST_F(RunningStatisticsTest, EachAverageIsOfTheSeedsSinceTheLastOne) {
  AfterOneStep([](Model& model, TrainStep& step, int rank) {
    const at::Tensor buffer = model.parameters().buffers()[0].tensor;
    ASSERT_TRUE(step.AverageBuffers().ok());
    buffer.fill_(rank);
    EXPECT_TRUE(step.MeanBuffers().value().empty());
    EXPECT_TRUE(step.RankBuffers().value().empty());
    ASSERT_TRUE(step.AverageBuffers().ok());
    EXPECT_TRUE(buffer.equal(at::full_like(buffer, rank)));
  });
}

TEST_F(RunningStatisticsTest, MeansChangeNothingThemselves) {
  AfterOneStep([](Model& model, TrainStep& step, int) {
    const std::vector<NamedTensor>& buffers = model.parameters().buffers();
    const at::Tensor before = buffers[0].tensor.clone();
    const std::vector<at::Tensor> means = step.MeanBuffers().value();
    ASSERT_EQ(means.size(), buffers.size());
    for (size_t i = 0; i < means.size(); ++i) {
      EXPECT_EQ(means[i].sizes(), buffers[i].tensor.sizes());
      EXPECT_EQ(means[i].scalar_type(), buffers[i].tensor.scalar_type());
    }
    EXPECT_TRUE(buffers[0].tensor.equal(before));
    EXPECT_TRUE(step.MeanBuffers().value()[0].equal(means[0]));
  });
}

// A group resumes between two averages as if it had not stopped.
TEST_F(RunningStatisticsTest, RanksGoOnFromTheirRows) {
  std::vector<std::vector<NamedTensor>> saved(2);
  std::vector<std::vector<at::Tensor>> own(2), means(2);
  AfterOneStep([&](Model& model, TrainStep& step, int rank) {
    saved[rank] = step.RankBuffers().value();
    means[rank] = step.MeanBuffers().value();
    for (const NamedTensor& buffer : model.parameters().buffers()) {
      own[rank].push_back(buffer.tensor.clone());
    }
  });
  ASSERT_GE(saved[0].size(), 2u);
  EXPECT_EQ(saved[0][0].name, TrainStep::kRankSeeds);
  EXPECT_TRUE(saved[0][0].tensor.equal(at::tensor({20, 10}, at::kLong)));
  for (size_t i = 1; i < saved[0].size(); ++i) {
    EXPECT_EQ(saved[1][i].name, saved[0][i].name);
    EXPECT_TRUE(saved[1][i].tensor.equal(saved[0][i].tensor));
  }
  RunRanks(2, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    const auto model = Model::Create(config_).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const std::vector<NamedTensor>& buffers = model->parameters().buffers();
    // Both have trained on one batch, which is no difference.
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].tensor.is_floating_point()) {
        buffers[i].tensor.copy_(own[rank][i]);
      }
    }
    ASSERT_TRUE(step.LoadRankBuffers(saved[rank]).ok());
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_TRUE(buffers[i].tensor.equal(own[rank][i])) << buffers[i].name;
    }
    const std::vector<at::Tensor> again = step.MeanBuffers().value();
    ASSERT_EQ(again.size(), means[rank].size());
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_TRUE(again[i].equal(means[rank][i]));
    }
  });
}

TEST_F(RunningStatisticsTest, OnlyWhatDiffersHasARowForEachRank) {
  AfterOneStep([](Model& model, TrainStep& step, int rank) {
    const std::vector<NamedTensor>& buffers = model.parameters().buffers();
    for (const NamedTensor& buffer : buffers) buffer.tensor.fill_(3);
    buffers[1].tensor.fill_(rank + 5);
    const std::vector<NamedTensor> ranks = step.RankBuffers().value();
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[1].name, buffers[1].name);
    std::vector<int64_t> shape = buffers[1].tensor.sizes().vec();
    shape.insert(shape.begin(), 2);
    EXPECT_EQ(ranks[1].tensor.sizes(), at::IntArrayRef(shape));
    EXPECT_TRUE(ranks[1].tensor[0].eq(5).all().item().toBool());
    EXPECT_TRUE(ranks[1].tensor[1].eq(6).all().item().toBool());
  });
}

TEST_F(RunningStatisticsTest, RefusesRowsOfAnotherModelOrWorld) {
  AfterOneStep([](Model& model, TrainStep& step, int) {
    const NamedTensor& buffer = model.parameters().buffers()[0];
    ASSERT_EQ(buffer.tensor.sizes(), at::IntArrayRef({8}));
    const at::Tensor before = buffer.tensor.clone();
    const auto message = [&step](const std::string& name,
                                 const at::Tensor& rows) {
      const absl::Status status = step.LoadRankBuffers({{name, rows}});
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
      return std::string(status.message());
    };
    const std::string of_buffer = "the ranks' \"" + buffer.name + "\" is ";
    EXPECT_EQ(message(buffer.name, at::zeros({3, 8})),
              of_buffer + "[3, 8], but must be [2, 8]");
    EXPECT_EQ(message(buffer.name, at::zeros({2, 9})),
              of_buffer + "[2, 9], but must be [2, 8]");
    EXPECT_EQ(message(buffer.name, at::zeros({2})),
              of_buffer + "[2], but must be [2, 8]");
    EXPECT_EQ(message(buffer.name, at::zeros({})),
              of_buffer + "[], but must be [2, 8]");
    const std::string seeds = TrainStep::kRankSeeds;
    const std::string of_seeds = "the ranks' \"" + seeds + "\" is ";
    EXPECT_EQ(message(seeds, at::zeros({3}, at::kLong)),
              of_seeds + "[3], but must be [2]");
    EXPECT_EQ(message(seeds, at::zeros({2, 1}, at::kLong)),
              of_seeds + "[2, 1], but must be [2]");
    EXPECT_EQ(
        message("another", at::zeros({2, 8})),
        "the model has no tensor \"another\", of which there is a row for "
        "each rank");
    EXPECT_TRUE(buffer.tensor.equal(before));
  });
}

TEST(TrainStepTest, ARankAloneHasNothingToAverage) {
  const auto source = Serve(ClassGraph(100, 30), "buffers_alone");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  ModelConfig config = Config(ModelKind::kSage);
  config.norm = NormKind::kBatch;
  RunRanks(1, [&](Collectives& collectives) {
    const auto model = Model::Create(config).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const Minibatch minibatch = MakeMinibatch(batches[0], *model).value();
    ASSERT_TRUE(step.Run(&minibatch, {}).ok());
    EXPECT_TRUE(step.MeanBuffers().value().empty());
    EXPECT_TRUE(step.RankBuffers().value().empty());
  });
}

// A forward pass would change the running statistics.
TEST(TrainStepTest, ABatchWithoutLabelsIsNotRead) {
  TestGraph graph = ClassGraph(100, 30);
  graph.types[0].label = Array::Adopt(std::vector<int64_t>(100, -1));
  const auto source = Serve(graph, "no_labels");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  ModelConfig config = Config(ModelKind::kSage);
  config.norm = NormKind::kBatch;
  RunRanks(1, [&](Collectives& collectives) {
    const auto model = Model::Create(config).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const at::Tensor buffer = model->parameters().buffers()[0].tensor;
    const at::Tensor before = buffer.clone();
    const Minibatch minibatch = MakeMinibatch(batches[0], *model).value();
    const auto sums = step.Run(&minibatch, {});
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ(sums->labelled, 0);
    EXPECT_EQ(sums->loss, 0);
    EXPECT_TRUE(buffer.equal(before));
    EXPECT_EQ(step.gradient().abs().max().item().toDouble(), 0);
  });
}

// The sums and the gradient are those of LibTorch's own mean loss.
TEST(TrainStepTest, SumsLossesAndDividesTheGradientOnce) {
  const auto source = Serve(ClassGraph(100, 30), "sums");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  RunRanks(1, [&](Collectives& collectives) {
    const auto model = Model::Create(Config(ModelKind::kSage)).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    const Minibatch minibatch = MakeMinibatch(batches[0], *model).value();
    const auto sums = step.Run(&minibatch, {});
    ASSERT_TRUE(sums.ok()) << sums.status();
    const at::Tensor got = step.gradient().clone();
    const at::Tensor logits = model->Forward(minibatch.graph, {});
    const at::Tensor mean = at::cross_entropy_loss(logits, minibatch.labels);
    std::vector<at::Tensor> want;
    for (const NamedTensor& named : model->parameters().parameters()) {
      at::Tensor parameter = named.tensor;
      parameter.mutable_grad().reset();
    }
    mean.backward();
    for (const NamedTensor& named : model->parameters().parameters()) {
      want.push_back(named.tensor.grad().reshape({-1}));
    }
    EXPECT_TRUE(at::allclose(got, at::cat(want), 1e-4, 1e-6));
    EXPECT_EQ(sums->labelled, 30);
    EXPECT_NEAR(sums->loss, 30 * mean.item().toDouble(), 1e-4);
    EXPECT_EQ(sums->correct,
              at::argmax(logits, 1).eq(minibatch.labels).sum().item().toLong());
  });
}

TEST(TrainStepTest, RefusesABatchThatNoMemoryHolds) {
  const auto source = Serve(ClassGraph(100, 30), "batch_memory");
  JobSpec job;
  job.fanouts = {2, 2};
  const std::vector<Batch> batches = AllBatches(source, job);
  RunRanks(1, [&](Collectives& collectives) {
    const auto model = Model::Create(Config(ModelKind::kSage)).value();
    const NodeObjective objective{Task()};
    TrainStep step(*model, collectives, objective);
    Minibatch minibatch = MakeMinibatch(batches[0], *model).value();
    ASSERT_TRUE(step.Run(&minibatch, {}).ok());
    // 4e9 rows of 8 floats.
    for (uint32_t& end : minibatch.graph.nodes[0].hop_offsets) {
      if (end > 0) end = 4'000'000'000;
    }
    const absl::Status status = step.Run(&minibatch, {}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(status.message().find("training on a batch of 30 seeds and their "
                                    "neighbours with 8 hidden columns needs "),
              0u)
        << status;
    EXPECT_EQ(ReasonOf(status), "batch_too_large");
  });
}

}  // namespace
}  // namespace millrace::testing
