// SPDX-License-Identifier: Apache-2.0
#include "client/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/steady_time.h"
#include "common/sample/local/local_batch_source.h"
#include "tests/support/forwarding_source.h"
#include "tests/support/node_seeds.h"
#include "tests/support/test_store.h"
#include "tests/support/watched_source.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A path graph of `nodes` nodes, all of them in the split "train".
std::shared_ptr<BatchSource> PathSource(int64_t nodes) {
  testing::TestGraph graph;
  graph.types = {{.name = "node", .count = nodes}};
  graph.relations = {{}};
  graph.splits = {{}};
  for (int64_t v = 0; v < nodes; ++v) {
    if (v > 0) graph.relations[0].edges.push_back({v - 1, v});
    graph.splits[0].ids.push_back(v);
  }
  return LocalBatchSource::Create(testing::TestStore(graph).Open(), 2).value();
}

JobSpec Job(int64_t batch_size) {
  JobSpec spec;
  spec.fanouts = {1};
  spec.batch_size = batch_size;
  return spec;
}

std::vector<LoaderStep> Drain(Loader& loader) {
  std::vector<LoaderStep> steps;
  while (true) {
    auto step = loader.Next();
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok() || !step->has_value()) return steps;
    steps.push_back(**std::move(step));
  }
}

TEST(LoaderTest, EverySeedOncePerEpochForAnyWorld) {
  const auto source = PathSource(23);
  for (const int world : {1, 2, 3, 5}) {
    std::vector<int64_t> seen;
    size_t steps_of_rank_0 = 0;
    for (int rank = 0; rank < world; ++rank) {
      auto loader = Loader::Create(source, Job(4),
                                   {.rank = rank, .world = world, .epochs = 2});
      ASSERT_TRUE(loader.ok()) << loader.status();
      const std::vector<LoaderStep> steps = Drain(**loader);
      if (rank == 0) steps_of_rank_0 = steps.size();
      EXPECT_EQ(steps.size(), steps_of_rank_0);
      EXPECT_EQ(steps.size(), 2 * (*loader)->steps_per_epoch());
      for (const LoaderStep& step : steps) {
        if (!step.batch.has_value() || step.epoch != 1) continue;
        for (const int64_t seed : step.batch->seed.As<int64_t>()) {
          seen.push_back(seed);
        }
      }
    }
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), 23) << world;
    for (int64_t v = 0; v < 23; ++v) EXPECT_EQ(seen[v], v);
  }
}

TEST(LoaderTest, StepsComeInPlanOrder) {
  const auto source = PathSource(40);
  auto loader =
      Loader::Create(source, Job(3), {.epochs = 3, .prefetch_batches = 7});
  ASSERT_TRUE(loader.ok()) << loader.status();
  uint32_t epoch = 0, batch = 0;
  for (const LoaderStep& step : Drain(**loader)) {
    EXPECT_EQ(step.epoch, epoch);
    ASSERT_TRUE(step.batch.has_value());
    EXPECT_EQ(step.batch->epoch, epoch);
    EXPECT_EQ(step.batch->index, batch);
    EXPECT_EQ(step.next_batch, batch + 1);
    EXPECT_EQ(step.last_of_epoch, batch == 13);
    if (++batch == 14) {
      batch = 0;
      ++epoch;
    }
  }
  EXPECT_EQ(epoch, 3);
}

// There are 6 batches: 3 steps with 2 ranks, or 2 steps with 4, the last of
// which is ragged.
TEST(LoaderTest, NextBatchIsTheResumePointForAnyWorldSize) {
  const auto source = PathSource(23);
  for (const int world : {1, 2, 3, 4, 6, 7}) {
    auto loader = Loader::Create(source, Job(4), {.world = world});
    ASSERT_TRUE(loader.ok()) << loader.status();
    uint32_t done = 0;
    for (const LoaderStep& step : Drain(**loader)) {
      done = std::min(done + static_cast<uint32_t>(world), 6u);
      EXPECT_EQ(step.next_batch, done) << "world " << world;
      auto rest =
          Loader::Create(source, Job(4), {.first_batch = step.next_batch});
      ASSERT_TRUE(rest.ok()) << rest.status();
      const std::vector<LoaderStep> steps = Drain(**rest);
      ASSERT_EQ(steps.size(), 6 - done);
      for (const LoaderStep& next : steps) {
        ASSERT_TRUE(next.batch.has_value());
        EXPECT_EQ(next.batch->index, done + next.step);
      }
    }
    EXPECT_EQ(done, 6u) << "world " << world;
  }
}

TEST(LoaderTest, ResumesWithinAnEpoch) {
  const auto source = PathSource(20);
  auto loader = Loader::Create(
      source, Job(4), {.first_epoch = 5, .first_batch = 3, .epochs = 2});
  ASSERT_TRUE(loader.ok()) << loader.status();
  const std::vector<LoaderStep> steps = Drain(**loader);
  ASSERT_EQ(steps.size(), 2 + 5);
  EXPECT_EQ(steps[0].epoch, 5);
  EXPECT_EQ(steps[0].batch->index, 3);
  EXPECT_TRUE(steps[1].last_of_epoch);
  EXPECT_EQ(steps[2].epoch, 6);
  EXPECT_EQ(steps[2].batch->index, 0);
}

// A checkpoint taken at the end of an epoch has this first_batch.
TEST(LoaderTest, ResumesAfterTheLastBatchOfAnEpoch) {
  for (const bool drop_last : {false, true}) {
    JobSpec spec = Job(4);
    spec.drop_last = drop_last;
    auto loader =
        Loader::Create(PathSource(20), spec, {.first_batch = 5, .epochs = 2});
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_EQ((*loader)->steps_of_first_epoch(), 0u);
    const auto pair =
        Loader::Create(PathSource(20), spec, {.world = 2, .first_batch = 5});
    ASSERT_TRUE(pair.ok()) << pair.status();
    EXPECT_EQ((*pair)->steps_of_first_epoch(), 0u);
    const std::vector<LoaderStep> steps = Drain(**loader);
    ASSERT_EQ(steps.size(), 5u);
    for (uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(steps[i].epoch, 1u);
      EXPECT_EQ(steps[i].batch->index, i);
    }
  }
}

TEST(LoaderTest, CountsTheTimeThatItWaits) {
  const SteadyTime start = SteadyNow();
  auto loader = Loader::Create(PathSource(40), Job(4), {});
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ((*loader)->waited(), absl::ZeroDuration());
  absl::Duration before;
  while ((*loader)->Next()->has_value()) {
    EXPECT_GT((*loader)->waited(), before);
    before = (*loader)->waited();
  }
  EXPECT_LE(before, SteadyNow() - start);
}

TEST(LoaderTest, RaggedStepGivesSomeRanksNothing) {
  const auto source = PathSource(9);
  auto loader = Loader::Create(source, Job(4), {.rank = 1, .world = 2});
  ASSERT_TRUE(loader.ok());
  const std::vector<LoaderStep> steps = Drain(**loader);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_TRUE(steps[0].batch.has_value());
  EXPECT_FALSE(steps[1].batch.has_value());
}

TEST(LoaderTest, DropLastSkipsTheRaggedStep) {
  const auto source = PathSource(13);
  JobSpec spec = Job(4);
  spec.drop_last = true;
  auto loader = Loader::Create(source, spec, {.rank = 1, .world = 2});
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ((*loader)->batches_per_epoch(), 3);
  EXPECT_EQ(Drain(**loader).size(), 1);
}

// Loads the rest of epoch 2, from batch 1 or 3 of 5 on, with three ranks.
TEST(LoaderTest, DropLastResumesInALargerWorld) {
  const auto source = PathSource(20);
  JobSpec spec = Job(4);
  spec.drop_last = true;
  for (const uint32_t first_batch : {1u, 3u}) {
    std::map<uint32_t, std::vector<uint32_t>> batches;  // by epoch
    for (int rank = 0; rank < 3; ++rank) {
      auto loader = Loader::Create(source, spec,
                                   {.rank = rank,
                                    .world = 3,
                                    .first_epoch = 2,
                                    .first_batch = first_batch,
                                    .epochs = 3});
      ASSERT_TRUE(loader.ok()) << loader.status();
      EXPECT_EQ((*loader)->steps_of_first_epoch(), first_batch == 1 ? 1u : 0u);
      for (const LoaderStep& step : Drain(**loader)) {
        EXPECT_TRUE(step.last_of_epoch);
        ASSERT_TRUE(step.batch.has_value());
        batches[step.epoch].push_back(step.batch->index);
      }
    }
    if (first_batch == 1) {
      EXPECT_THAT(batches[2], ::testing::ElementsAre(1, 2, 3));
    } else {
      EXPECT_FALSE(batches.contains(2));
    }
    EXPECT_THAT(batches[3], ::testing::ElementsAre(0, 1, 2));
    EXPECT_THAT(batches[4], ::testing::ElementsAre(0, 1, 2));
    EXPECT_FALSE(batches.contains(5));
  }
}

TEST(LoaderTest, SeedsOfTheUserReplaceTheSplit) {
  const auto source = PathSource(20);
  JobSpec spec = Job(2);
  spec.shuffle = false;
  LoaderOptions options;
  options.seeds = testing::Seeds{{7, 3, 7}};
  auto loader = Loader::Create(source, spec, std::move(options));
  ASSERT_TRUE(loader.ok()) << loader.status();
  const std::vector<LoaderStep> steps = Drain(**loader);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_THAT(steps[0].batch->seed.As<int64_t>(), ::testing::ElementsAre(7, 3));
  EXPECT_THAT(steps[1].batch->seed.As<int64_t>(), ::testing::ElementsAre(7));
}

TEST(LoaderTest, EachEpochTakesItsOwnSeeds) {
  const auto source = PathSource(20);
  JobSpec spec = Job(2);
  spec.shuffle = false;
  LoaderOptions options;
  options.epoch_seeds = {testing::Seeds{{0}}, testing::Seeds{{7}},
                         testing::Seeds{{9}}};
  options.first_epoch = 1;
  options.epochs = 2;
  auto loader = Loader::Create(source, spec, options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const std::vector<LoaderStep> steps = Drain(**loader);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_THAT(steps[0].batch->seed.As<int64_t>(), ::testing::ElementsAre(7));
  EXPECT_THAT(steps[1].batch->seed.As<int64_t>(), ::testing::ElementsAre(9));
  options.epochs = 3;
  EXPECT_THAT(
      std::string(Loader::Create(source, spec, options).status().message()),
      HasSubstr("seeds for 3 epochs, but epochs up to 3 are requested"));
  options.epochs = 1;
  options.epoch_seeds[2] = testing::Seeds{{1, 2}};
  EXPECT_THAT(
      std::string(Loader::Create(source, spec, options).status().message()),
      HasSubstr("have 1 and 2 seeds"));
}

TEST(LoaderTest, ByteLimitStillMovesForward) {
  const auto source = PathSource(20);
  auto loader = Loader::Create(source, Job(4), {.prefetch_bytes = 1});
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ(Drain(**loader).size(), 5);
}

TEST(LoaderTest, RequestsFewBatchesBeforeTheirSizeIsKnown) {
  int fetches = 0;
  const auto source = std::make_shared<testing::WatchedSource>(
      PathSource(40), [&fetches](const auto&, const auto&) {
        ++fetches;
        return absl::OkStatus();
      });
  auto loader = Loader::Create(source, Job(1),
                               {.prefetch_batches = 64, .prefetch_bytes = 1});
  ASSERT_TRUE(loader.ok()) << loader.status();
  ASSERT_TRUE((*loader)->Next().ok());
  EXPECT_EQ(fetches, 4);
  EXPECT_EQ(Drain(**loader).size(), 39);
}

TEST(LoaderTest, PrefetchesAsManyBatchesAsFitTheByteLimit) {
  JobSpec spec = Job(1);
  spec.fanouts = {};  // so that all batches have one size
  int fetches = 0;
  const auto source = std::make_shared<testing::WatchedSource>(
      PathSource(40), [&fetches](const auto&, const auto&) {
        ++fetches;
        return absl::OkStatus();
      });
  LoaderOptions options;
  options.prefetch_batches = 64;
  options.prefetch_bytes = 1;
  auto loader = Loader::Create(source, spec, options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto bytes =
      static_cast<int64_t>((*(*loader)->Next())->batch->total_bytes());
  loader->reset();
  for (const int64_t limit : {6 * bytes, 7 * bytes - 1}) {
    fetches = 0;
    options.prefetch_bytes = limit;
    loader = Loader::Create(source, spec, options);
    ASSERT_TRUE(loader.ok()) << loader.status();
    for (int taken = 1; taken <= 10; ++taken) {
      ASSERT_TRUE((*loader)->Next().ok());
      EXPECT_EQ(fetches, taken + 6);
    }
  }
}

// Delivers batches of given sizes in place of those of another source.
class SizedSource final : public testing::ForwardingSource {
 public:
  // `sizes`: bytes of the first batches that are asked for; the others are as
  // large as the last of these.
  SizedSource(std::shared_ptr<BatchSource> source, std::vector<int64_t> sizes)
      : ForwardingSource(std::move(source)), sizes_(std::move(sizes)) {}

  void Fetch(const ResolvedJob&, BatchRequest, BatchCallback done) override {
    // Nothing reads the seeds, so they need no memory.
    static const uint8_t kByte = 0;
    Batch batch;
    batch.seed = Array::Borrow(DType::kUint8,
                               {sizes_[std::min(fetches_, sizes_.size() - 1)]},
                               &kByte, nullptr);
    ++fetches_;
    done(std::move(batch));
  }

  size_t fetches() const { return fetches_; }

 private:
  const std::vector<int64_t> sizes_;
  size_t fetches_ = 0;
};

// Answers the first fetch at once, and later ones when told to.
class HeldSource final : public testing::ForwardingSource {
 public:
  explicit HeldSource(std::shared_ptr<BatchSource> source)
      : ForwardingSource(std::move(source)) {}

  void Fetch(const ResolvedJob&, BatchRequest, BatchCallback done) override {
    held_.push_back(std::move(done));
    if (std::exchange(answers_, false)) Answer();
  }

  void Answer() {
    for (BatchCallback& done : std::exchange(held_, {})) done(Batch());
  }

 private:
  std::vector<BatchCallback> held_;
  bool answers_ = true;
};

TEST(LoaderTest, SaysWhetherTheNextStepIsThere) {
  const auto source = std::make_shared<HeldSource>(PathSource(8));
  auto loader = Loader::Create(source, Job(4), {.prefetch_batches = 1}).value();
  EXPECT_FALSE(loader->ready());  // nothing has been requested yet
  ASSERT_TRUE(loader->Next()->has_value());
  EXPECT_FALSE(loader->ready());
  source->Answer();
  EXPECT_TRUE(loader->ready());
  ASSERT_TRUE(loader->Next()->has_value());
  EXPECT_TRUE(loader->ready());
  EXPECT_FALSE(loader->Next()->has_value());
}

// 8 batches of 800 bytes fit into 6800 bytes. With the second one the mean
// becomes (7 * 800 + 8000) / 8 = 1700 bytes, of which 4 fit.
TEST(LoaderTest, EachBatchCountsForAnEighthOfTheMeanSize) {
  const auto source = std::make_shared<SizedSource>(
      PathSource(40), std::vector<int64_t>{800, 8000, 1700});
  auto loader = Loader::Create(
      source, Job(1), {.prefetch_batches = 64, .prefetch_bytes = 6800});
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<size_t> fetches;
  for (int taken = 1; taken <= 8; ++taken) {
    ASSERT_TRUE((*loader)->Next().ok());
    fetches.push_back(source->fetches());
  }
  EXPECT_THAT(fetches, ::testing::ElementsAre(9, 9, 9, 9, 9, 10, 11, 12));
}

TEST(LoaderTest, PrefetchesNoMoreBatchesThanConfigured) {
  const auto source =
      std::make_shared<SizedSource>(PathSource(40), std::vector<int64_t>{8});
  auto loader = Loader::Create(source, Job(1), {.prefetch_batches = 6});
  ASSERT_TRUE(loader.ok()) << loader.status();
  for (size_t taken = 1; taken <= 10; ++taken) {
    ASSERT_TRUE((*loader)->Next().ok());
    EXPECT_EQ(source->fetches(), taken + 6);
  }
}

TEST(LoaderTest, WindowMustFitInMemory) {
  LoaderOptions options;
  options.prefetch_batches = 1 << 30;
  options.prefetch_bytes = int64_t{1} << 60;
  options.epochs = 1 << 30;
  auto loader = Loader::Create(PathSource(40), Job(1), options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const absl::Status status = (*loader)->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("prefetching 1073741824 batches of "));
  // The epoch has fewer batches than that.
  options.epochs = 1;
  loader = Loader::Create(PathSource(40), Job(1), options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ(Drain(**loader).size(), 40);
}

TEST(LoaderTest, AWindowThatDoesNotFitIsRefusedEveryTime) {
  const auto source = std::make_shared<SizedSource>(
      PathSource(40), std::vector<int64_t>{int64_t{1} << 50});
  auto loader = Loader::Create(
      source, Job(1),
      {.prefetch_batches = 64, .prefetch_bytes = int64_t{1} << 60});
  ASSERT_TRUE(loader.ok()) << loader.status();
  const absl::Status first = (*loader)->Next().status();
  EXPECT_EQ(first.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*loader)->Next().status(), first);
}

// Each batch has 2^50 bytes, or 1 PiB.
TEST(LoaderTest, MemoryIsForTheBatchesThatAreStillToCome) {
  const auto refusal = [](LoaderOptions options, int64_t nodes) {
    options.prefetch_bytes =
        options.prefetch_bytes == 1 ? int64_t{3} << 50 : int64_t{1} << 62;
    const auto source = std::make_shared<SizedSource>(
        PathSource(nodes), std::vector<int64_t>{int64_t{1} << 50});
    auto loader = Loader::Create(source, Job(1), options);
    EXPECT_TRUE(loader.ok()) << loader.status();
    return std::string((*loader)->Next().status().message());
  };
  // Four were asked for at once; 6 of 10 are left.
  EXPECT_THAT(
      refusal({.epochs = 2, .prefetch_batches = 64}, 5),
      HasSubstr("prefetching 64 batches of 1.0 PiB each needs 6.0 PiB"));
  // Of an epoch that was begun, and of three whole ones: 2 + 15 - 4.
  EXPECT_THAT(refusal({.first_epoch = 7,
                       .first_batch = 3,
                       .epochs = 4,
                       .prefetch_batches = 64},
                      5),
              HasSubstr("needs 13.0 PiB"));
  // The window has room for one more.
  EXPECT_THAT(refusal({.epochs = 2, .prefetch_batches = 5}, 5),
              HasSubstr("prefetching 5 batches of 1.0 PiB each needs 1.0 PiB"));
  EXPECT_THAT(
      refusal({.epochs = 2, .prefetch_batches = 64, .prefetch_bytes = 1}, 5),
      HasSubstr("needs 3.0 PiB"));
  // Nothing is left.
  EXPECT_EQ(refusal({.prefetch_batches = 64}, 4), "");
}

TEST(LoaderTest, TheLastEpochThatANumberHoldsIsLoaded) {
  auto loader = Loader::Create(PathSource(5), Job(2),
                               {.first_epoch = 4294967295u, .epochs = 1});
  ASSERT_TRUE(loader.ok()) << loader.status();
  const std::vector<LoaderStep> steps = Drain(**loader);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[2].epoch, 4294967295u);
  EXPECT_TRUE(steps[2].last_of_epoch);
}

TEST(LoaderTest, CountsBatchesStepsAndSeeds) {
  auto loader =
      Loader::Create(PathSource(23), Job(4), {.world = 4, .first_batch = 3});
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ((*loader)->batches_per_epoch(), 6u);
  EXPECT_EQ((*loader)->steps_per_epoch(), 2u);
  EXPECT_EQ((*loader)->steps_of_first_epoch(), 1u);
  EXPECT_EQ((*loader)->seeds_per_epoch(), 23);
}

TEST(LoaderTest, NoEpochsHaveNoSteps) {
  auto loader = Loader::Create(PathSource(5), Job(2), {.epochs = 0});
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_TRUE(Drain(**loader).empty());
  EXPECT_EQ((*loader)->steps_per_epoch(), 3u);
}

TEST(LoaderTest, ColumnsAreAskedFor) {
  Columns seen;
  const auto source = std::make_shared<testing::WatchedSource>(
      PathSource(4), [&seen](const auto&, const BatchRequest& request) {
        seen = request.columns;
        return absl::OkStatus();
      });
  const Columns wanted = {.original_ids = true, .degrees = true};
  auto loader = Loader::Create(source, Job(4), {.columns = wanted});
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ(Drain(**loader).size(), 1u);
  EXPECT_EQ(seen, wanted);
}

TEST(LoaderTest, EmptySplitHasNoSteps) {
  const auto source = PathSource(0);
  auto loader = Loader::Create(source, Job(4), {.epochs = 3});
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_TRUE(Drain(**loader).empty());
}

TEST(LoaderTest, ErrorsAreSticky) {
  const auto source = PathSource(20);
  LoaderOptions options;
  options.seeds = testing::Seeds{{1, 99}};
  auto loader = Loader::Create(source, Job(4), std::move(options));
  ASSERT_TRUE(loader.ok());
  for (int i = 0; i < 2; ++i) {
    const auto step = (*loader)->Next();
    EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LoaderTest, RefusesOptionsOutOfRange) {
  const auto source = PathSource(5);
  const auto refused = [&](LoaderOptions options) {
    return Loader::Create(source, Job(1), std::move(options)).status();
  };
  EXPECT_EQ(refused({.rank = 2, .world = 2}),
            absl::InvalidArgumentError("rank 2 is not in a world of 2; ranks "
                                       "go from 0 to world size - 1"));
  EXPECT_FALSE(refused({.rank = -1, .world = 2}).ok());
  EXPECT_FALSE(refused({.rank = 0, .world = 0}).ok());
  EXPECT_TRUE(refused({.rank = 1, .world = 2}).ok());
  EXPECT_TRUE(refused({.prefetch_batches = 1, .prefetch_bytes = 1}).ok());
  EXPECT_EQ(refused({.prefetch_bytes = 0}).message(),
            "prefetch_bytes 0 is out of range: at least 1");
  EXPECT_THAT(
      std::string(Loader::Create(source, Job(1), {.prefetch_batches = 0})
                      .status()
                      .message()),
      HasSubstr("prefetch_batches 0 is out of range"));
  JobSpec spec = Job(1);
  spec.split = "nothere";
  EXPECT_THAT(std::string(Loader::Create(source, spec, {}).status().message()),
              HasSubstr("it has: train"));
}

}  // namespace
}  // namespace millrace
