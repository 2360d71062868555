// SPDX-License-Identifier: Apache-2.0
#include "client/train/minibatch_feeder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/pretend_device.h"
#include "tests/support/watched_source.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

// 60 seeds in 8 batches, the last of which has 4.
constexpr int64_t kFedSeeds = 60;

class MinibatchFeederTest : public ::testing::TestWithParam<bool> {
 protected:
  MinibatchFeederTest()
      : device_(GetParam() ? PretendDevice() : c10::Device(c10::kCPU)),
        source_(Serve(ClassGraph(120, kFedSeeds), "feeder")) {
    ModelConfig config;
    config.in = 6;
    config.hidden = 8;
    config.out = 4;
    model_ = Model::Create(config, std::nullopt, device_).value();
  }

  std::unique_ptr<Loader> MakeLoader(std::shared_ptr<BatchSource> source) {
    JobSpec job;
    job.fanouts = {3, 2};
    job.batch_size = 8;
    LoaderOptions options;
    options.epochs = 2;
    return Loader::Create(std::move(source), job, std::move(options)).value();
  }

  static void WaitUntilReady(const Loader& loader) {
    while (!loader.ready()) std::this_thread::yield();
  }

  const c10::Device device_;
  const std::shared_ptr<BatchSource> source_;
  std::unique_ptr<Model> model_;
};

TEST_P(MinibatchFeederTest, GivesEveryStepInOrderOnTheDevice) {
  MinibatchFeeder feeder(MakeLoader(source_), *model_, Task());
  const auto plain = MakeLoader(source_);
  while (true) {
    const auto want = plain->Next().value();
    const auto got = feeder.Next().value();
    ASSERT_EQ(got.has_value(), want.has_value());
    if (!want.has_value()) break;
    EXPECT_EQ(got->step.epoch, want->epoch);
    EXPECT_EQ(got->step.next_batch, want->next_batch);
    ASSERT_TRUE(got->minibatch.has_value());
    const at::Tensor& x = got->minibatch->graph.nodes[0].x;
    EXPECT_EQ(x.device(), device_);
    EXPECT_EQ(got->minibatch->labels.device(), device_);
    EXPECT_EQ(got->arrival.has_value(), !device_.is_cpu());
    const Subgraph plain_graph =
        MakeMinibatch(*want->batch,
                      *Model::Create(model_->config(), model_->shape()).value())
            .value()
            .graph;
    EXPECT_TRUE(x.cpu().equal(plain_graph.nodes[0].x));
    EXPECT_TRUE(got->minibatch->graph.neighbors[0].index.cpu().equal(
        plain_graph.neighbors[0].index));
    feeder.CopyAhead();
  }
  // The end stays the end.
  feeder.CopyAhead();
  EXPECT_FALSE(feeder.Next().value().has_value());
  EXPECT_GT(feeder.copied(), absl::ZeroDuration());
}

TEST_P(MinibatchFeederTest, CopiesTwoStepsAhead) {
  MinibatchFeeder feeder(MakeLoader(source_), *model_, Task());
  std::vector<FedStep> steps;  // which keep their memory
  steps.push_back(*feeder.Next().value());
  const int64_t before = BytesOfPretendDevice();
  for (size_t i = 0; i <= MinibatchFeeder::kAhead; ++i) {
    WaitUntilReady(feeder.loader());
    feeder.CopyAhead();
  }
  const int64_t full = BytesOfPretendDevice();
  EXPECT_EQ(full > before, !device_.is_cpu());
  WaitUntilReady(feeder.loader());
  feeder.CopyAhead();
  EXPECT_EQ(BytesOfPretendDevice(), full);
  // Two steps are there without more copies, and the third is not.
  for (size_t i = 0; i < MinibatchFeeder::kAhead; ++i) {
    steps.push_back(*feeder.Next().value());
    EXPECT_EQ(BytesOfPretendDevice(), full);
  }
  steps.push_back(*feeder.Next().value());
  EXPECT_EQ(BytesOfPretendDevice() > full, !device_.is_cpu());
}

TEST_P(MinibatchFeederTest, AnErrorComesWithItsStep) {
  const auto breaking = std::make_shared<WatchedSource>(
      source_, [](const ResolvedJob&, const BatchRequest& request) {
        return request.batch == 2 ? absl::UnavailableError("no such luck")
                                  : absl::OkStatus();
      });
  MinibatchFeeder feeder(MakeLoader(breaking), *model_, Task());
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(feeder.Next().value().has_value());
    for (int i = 0; i < 3; ++i) {
      WaitUntilReady(feeder.loader());
      feeder.CopyAhead();
    }
  }
  EXPECT_EQ(feeder.Next().status().message(), "no such luck");
  EXPECT_EQ(feeder.Next().status().message(), "no such luck");
}

// As when a training run ends early.
TEST_P(MinibatchFeederTest, CanEndWithStepsAhead) {
  MinibatchFeeder feeder(MakeLoader(source_), *model_, Task());
  ASSERT_TRUE(feeder.Next().ok());
  WaitUntilReady(feeder.loader());
  feeder.CopyAhead();
}

INSTANTIATE_TEST_SUITE_P(Devices, MinibatchFeederTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "pretend" : "cpu";
                         });

TEST(WorkTimerTest, AddsUpTheTimesOfPieces) {
  for (const c10::Device device : {c10::Device(c10::kCPU), PretendDevice()}) {
    WorkTimer timer(device);
    const SteadyTime start = SteadyNow();
    absl::Duration before;
    // More than it keeps at once.
    for (int i = 0; i < 40; ++i) {
      timer.Start();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      timer.Stop();
      if (i % 10 != 0) continue;
      EXPECT_GE(timer.Total() - before, absl::Milliseconds(1));
      before = timer.Total();
    }
    EXPECT_GE(timer.Total(), absl::Milliseconds(40));
    EXPECT_LE(timer.Total(), SteadyNow() - start);
  }
}

}  // namespace
}  // namespace millrace::testing
