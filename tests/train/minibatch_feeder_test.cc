// SPDX-License-Identifier: Apache-2.0
#include "client/train/minibatch_feeder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "tests/support/forwarding_source.h"
#include "tests/support/pretend_device.h"
#include "tests/support/watched_source.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

// 60 seeds in 8 batches, the last of which has 4.
constexpr int64_t kFedSeeds = 60;

// Lends the memory of the features in its batches, and notes which is given
// back while the device still reads it.
// Threads: any.
class LendingSource final : public ForwardingSource {
 public:
  explicit LendingSource(std::shared_ptr<BatchSource> source)
      : ForwardingSource(std::move(source)) {}

  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    ForwardingSource::Fetch(job, std::move(request),
                            [counts = counts_, done = std::move(done)](
                                absl::StatusOr<Batch> batch) mutable {
                              if (batch.ok())
                                Lend(counts, batch->nodes[0].feature);
                              done(std::move(batch));
                            });
  }

  int released() const { return counts_->released; }
  int released_early() const { return counts_->early; }

 private:
  struct Counts {
    std::atomic<int> released = 0, early = 0;
  };

  static void Lend(const std::shared_ptr<Counts>& counts, Array& array) {
    const Array lender = array;
    const std::shared_ptr<const void> owner(
        static_cast<const void*>(lender.data()),
        [counts, lender](const void* memory) {
          ++counts->released;
          if (PretendDeviceReads(memory)) ++counts->early;
        });
    array = Array::Borrow(lender.dtype(), lender.shape(), lender.data(), owner);
  }

  // Shared with the batches.
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

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

  std::unique_ptr<Loader> MakeLoader(std::shared_ptr<BatchSource> source,
                                     int prefetch_batches = 4) {
    JobSpec job;
    job.fanouts = {3, 2};
    job.batch_size = 8;
    LoaderOptions options;
    options.epochs = 2;
    options.prefetch_batches = prefetch_batches;
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
    EXPECT_EQ(got->arrival != nullptr, !device_.is_cpu());
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

TEST_P(MinibatchFeederTest, ReleasesBatchesAfterTheirCopies) {
  const auto lending = std::make_shared<LendingSource>(source_);
  {
    MinibatchFeeder feeder(MakeLoader(lending), *model_, Task());
    // Steps that nothing computes, as after an error.
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(feeder.Next().value().has_value());
      WaitUntilReady(feeder.loader());
      feeder.CopyAhead();
    }
  }
  EXPECT_GE(lending->released(), 3);
  EXPECT_EQ(lending->released_early(), 0);
}

// As when a training run ends early.
TEST_P(MinibatchFeederTest, CanEndWithStepsAhead) {
  const auto lending = std::make_shared<LendingSource>(source_);
  {
    MinibatchFeeder feeder(MakeLoader(lending), *model_, Task());
    ASSERT_TRUE(feeder.Next().ok());
    for (size_t i = 0; i < MinibatchFeeder::kAhead; ++i) {
      WaitUntilReady(feeder.loader());
      feeder.CopyAhead();
    }
  }
  // On a CPU, nothing is copied ahead.
  const size_t taken = 1 + (device_.is_cpu() ? 0 : MinibatchFeeder::kAhead);
  EXPECT_GE(lending->released(), static_cast<int>(taken));
  EXPECT_EQ(lending->released_early(), 0);
}

class PretendFeederTest : public MinibatchFeederTest {
 protected:
  ~PretendFeederTest() override {
    SetPretendMemory(std::numeric_limits<int64_t>::max());
    LimitPretendEvents(std::numeric_limits<int64_t>::max());
  }

  void CopyAhead(MinibatchFeeder& feeder) {
    WaitUntilReady(feeder.loader());
    feeder.CopyAhead();
  }
};

TEST_P(PretendFeederTest, ReleasesBatchesAfterCopiesThatFailHalfway) {
  const auto lending = std::make_shared<LendingSource>(source_);
  int failed = 0;
  while (true) {
    MinibatchFeeder feeder(MakeLoader(lending), *model_, Task());
    SetPretendMemory(BytesOfPretendDevice() + 100 * failed);
    const bool fits = feeder.Next().ok();
    SetPretendMemory(std::numeric_limits<int64_t>::max());
    if (fits) break;
    ++failed;
  }
  EXPECT_GE(failed, 10);
  EXPECT_GE(lending->released(), failed);
  EXPECT_EQ(lending->released_early(), 0);
}

TEST_P(PretendFeederTest, ACopyAheadThatDoesNotFitIsMadeLater) {
  int requests = 0;
  const auto counting = std::make_shared<WatchedSource>(
      source_, [&requests](const ResolvedJob&, const BatchRequest&) {
        ++requests;
        return absl::OkStatus();
      });
  const auto plain = MakeLoader(source_);
  MinibatchFeeder feeder(MakeLoader(counting, /*prefetch_batches=*/1), *model_,
                         Task());
  std::optional<FedStep> first = feeder.Next().value();
  ASSERT_TRUE(plain->Next().ok());
  SetPretendMemory(BytesOfPretendDevice() + 500);
  CopyAhead(feeder);
  // No copies ahead of that one, though there is memory now.
  SetPretendMemory(std::numeric_limits<int64_t>::max());
  const int64_t before = BytesOfPretendDevice();
  CopyAhead(feeder);
  EXPECT_EQ(BytesOfPretendDevice(), before);
  // Those of two steps, and one that the loader fetches for the third.
  EXPECT_EQ(requests, 3);
  // As much memory as one step needs.
  SetPretendMemory(before);
  first.reset();
  const std::optional<LoaderStep> want = plain->Next().value();
  auto second = feeder.Next();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE((*second)->minibatch.has_value());
  EXPECT_EQ((*second)->step.next_batch, want->next_batch);
  EXPECT_EQ((*second)->minibatch->graph.nodes[0].x.size(0),
            want->batch->nodes[0].feature.rows());
  SetPretendMemory(std::numeric_limits<int64_t>::max());
  CopyAhead(feeder);
  EXPECT_GT(BytesOfPretendDevice(), before);
}

TEST_P(PretendFeederTest, KnowsWhatACopyTakesAtLeast) {
  const LoaderStep step = *MakeLoader(source_)->Next().value();
  const uint64_t bytes = CopyBytes(*step.batch, *model_);
  // The features, in 6 columns, are most of it.
  EXPECT_GT(bytes,
            sizeof(float) * static_cast<uint64_t>(
                                step.batch->nodes[0].feature.element_count()));
  const int64_t before = BytesOfPretendDevice();
  int begun = 0;
  const auto minibatch = MakeMinibatch(*step.batch, *model_, Task(), [&] {
    ++begun;
    EXPECT_EQ(BytesOfPretendDevice(), before);
  });
  EXPECT_TRUE(minibatch.ok());
  EXPECT_EQ(begun, 1);
  const auto took = static_cast<uint64_t>(BytesOfPretendDevice() - before);
  EXPECT_LE(bytes, took);
  EXPECT_GT(bytes, took / 2);
  EXPECT_EQ(CopyBytes(*step.batch, *Model::Create(model_->config()).value()),
            0u);
}

TEST_P(PretendFeederTest, ACopyThatDoesNotFitWhenItIsNeededIsAnError) {
  MinibatchFeeder feeder(MakeLoader(source_), *model_, Task());
  ASSERT_TRUE(feeder.Next().ok());
  SetPretendMemory(BytesOfPretendDevice() + 500);
  CopyAhead(feeder);
  for (int call = 0; call < 2; ++call) {
    const absl::Status status = feeder.Next().status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(ReasonOf(status), "out_of_device_memory");
  }
}

TEST_P(PretendFeederTest, ALostDeviceIsAnError) {
  MinibatchFeeder feeder(MakeLoader(source_), *model_, Task());
  ASSERT_TRUE(feeder.Next().ok());
  LimitPretendEvents(0);
  CopyAhead(feeder);
  const absl::Status status = feeder.Next().status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("the device is lost"));
}

INSTANTIATE_TEST_SUITE_P(Devices, PretendFeederTest, ::testing::Values(true),
                         [](const auto&) { return "pretend"; });

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
