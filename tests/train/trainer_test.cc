// SPDX-License-Identifier: Apache-2.0
#include "client/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "tests/support/captured_output.h"
#include "tests/support/watched_source.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStdout;

std::vector<double> Losses(const std::vector<MetricsRecord>& history) {
  std::vector<double> losses;
  for (const MetricsRecord& record : history) {
    losses.push_back(record.loss.value_or(-1));
  }
  return losses;
}

// Uses batch norm and dropout, whose results might depend on more than the
// batch.
TrainOptions NoisyRun() {
  TrainOptions options = SmallRun();
  options.model.norm = NormKind::kBatch;
  options.model.dropout = 0.5;
  options.log_every = 1;
  return options;
}

TEST(TrainerTest, LearnsTheClasses) {
  const auto source = Serve(ClassGraph(400, 200), "learns");
  TrainOptions options = SmallRun();
  options.epochs = 30;
  const auto history = TrainRanks(1, source, options);
  ASSERT_EQ(history.size(), 30u);
  EXPECT_LT(*history.back().loss, 0.5 * *history.front().loss);
  EXPECT_GT(*history.back().metrics.train, 0.9);
  EXPECT_GT(*history.back().metrics.test, 0.7);
}

TEST(TrainerTest, TwoRunsHaveEqualLosses) {
  const auto source = Serve(ClassGraph(200, 100), "two_runs");
  for (const int world : {1, 2}) {
    const auto first = TrainRanks(world, source, NoisyRun());
    const auto second = TrainRanks(world, source, NoisyRun());
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(Losses(first), Losses(second));
  }
}

TEST(TrainerTest, PartitionsDoNotChangeLosses) {
  const TestGraph graph = ClassGraph(200, 100);
  const auto whole = TrainRanks(2, Serve(graph, "whole"), NoisyRun());
  const auto parts = TrainRanks(2, Serve(graph, "parts", 3), NoisyRun());
  EXPECT_EQ(Losses(whole), Losses(parts));
}

class WorldTest : public ::testing::TestWithParam<int> {};

// With W * B + 1 seeds, the last step has a batch of one row for one rank, and
// none for the others.
TEST_P(WorldTest, UsesEverySeedOncePerEpoch) {
  const int world = GetParam();
  const int64_t seeds = world * 16 + 1;
  const auto source = Serve(ClassGraph(200, seeds), "every_seed");
  TrainOptions options = NoisyRun();
  const auto log = TestDirectory("every_seed_log") / "consumed";
  options.consumed_log = log.string();
  const auto history = TrainRanks(world, source, options);
  EXPECT_EQ(history.size(), 2u * (2 + 1));     // steps and epochs
  std::map<int, std::map<int64_t, int>> seen;  // epoch -> seed -> times
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("batch")) continue;  // the start of an attempt
    EXPECT_EQ(json["digest"].get<std::string>().size(), 64u);
    for (const int64_t seed : json["seeds"]) ++seen[json["epoch"]][seed];
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [epoch, times] : seen) {
    EXPECT_EQ(times.size(), static_cast<size_t>(seeds));
    for (const auto& [seed, count] : times) EXPECT_EQ(count, 1) << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, WorldTest, ::testing::Values(1, 2, 3));

// Serves another source's batches up to one that it refuses.
std::shared_ptr<BatchSource> BreakingSource(std::shared_ptr<BatchSource> source,
                                            uint32_t epoch, uint32_t batch) {
  return std::make_shared<WatchedSource>(
      std::move(source),
      [epoch, batch](const ResolvedJob&, const BatchRequest& request) {
        return request.epoch == epoch && request.batch >= batch
                   ? absl::UnavailableError("the power is cut")
                   : absl::OkStatus();
      });
}

TEST(TrainerTest, ResumedRunReplaysTheLosses) {
  const auto source = Serve(ClassGraph(300, 100), "resume");
  TrainOptions options = NoisyRun();
  options.epochs = 3;
  const auto baseline = TrainRanks(2, source, options);
  // Per epoch: 4 steps for the 7 batches of 100 seeds, and the epoch's end.
  ASSERT_EQ(baseline.size(), 3u * 5);

  // The first attempt dies in the last step of epoch 1; its checkpoint is from
  // the step before.
  options.checkpoint = (TestDirectory("resume_checkpoint") / "run").string();
  options.checkpoint_every = 3;
  const auto breaking = BreakingSource(source, 1, 6);
  RunRanks(2, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(breaking, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status status = (*trainer)->Run();
    EXPECT_NE(status.message().find("the power is cut"),
              absl::string_view::npos)
        << status;
    collectives.Fail(status);
  });
  options.resume = true;
  const auto resumed = TrainRanks(2, source, options);
  const std::vector<double> all = Losses(baseline);
  ASSERT_EQ(resumed.size(), 2u + 5);  // a step and the epoch, and epoch 2
  EXPECT_EQ(Losses(resumed), (std::vector<double>(all.end() - 7, all.end())));
}

// A run with 17 seeds: the last batch has one row, for which a batch norm uses
// its running statistics, so these must not depend on checkpoints either.
TrainOptions OneRowRun() {
  TrainOptions options = NoisyRun();
  options.job.batch_size = 4;
  options.job.fanouts = {0, 0};
  return options;
}

TEST(TrainerTest, CheckpointsDoNotChangeLosses) {
  const auto source = Serve(ClassGraph(200, 17), "no_change");
  for (const int world : {1, 2}) {
    for (TrainOptions options : {NoisyRun(), OneRowRun()}) {
      const std::vector<double> baseline =
          Losses(TrainRanks(world, source, options));
      options.checkpoint = (TestDirectory("no_change_c") / "run").string();
      options.checkpoint_every = 1;
      EXPECT_EQ(Losses(TrainRanks(world, source, options)), baseline) << world;
    }
  }
}

// Dies at every step in turn, with running statistics that differ between
// ranks.
TEST(TrainerTest, ResumesWithEachRanksStatistics) {
  const auto source = Serve(ClassGraph(200, 17), "rank_buffers");
  TrainOptions options = OneRowRun();
  options.epochs = 1;
  const std::vector<double> baseline = Losses(TrainRanks(2, source, options));
  for (const uint32_t dies_at : {2u, 4u}) {
    options.resume = false;
    options.checkpoint = (TestDirectory("rank_buffers_c") / "run").string();
    options.checkpoint_every = 1;
    const auto breaking = BreakingSource(source, 0, dies_at);
    RunRanks(2, [&](Collectives& collectives) {
      auto trainer = Trainer::Create(breaking, collectives, options);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      collectives.Fail((*trainer)->Run());
    });
    options.resume = true;
    const std::vector<double> rest = Losses(TrainRanks(2, source, options));
    ASSERT_EQ(rest.size(), baseline.size() - dies_at / 2);
    EXPECT_EQ(rest, (std::vector<double>(baseline.begin() + dies_at / 2,
                                         baseline.end())));
  }
}

TEST(TrainerTest, FullDiskEndsTheRunAndKeepsTheLastCheckpoint) {
  const auto source = Serve(ClassGraph(200, 100), "full_disk");
  TrainOptions options = NoisyRun();
  const auto folder = TestDirectory("full_disk_c");
  options.checkpoint = folder.string();
  TrainRanks(1, source, options);
  const auto size = std::filesystem::file_size(folder / "last.pt");
  const auto written = std::filesystem::last_write_time(folder / "last.pt");
  options.resume = true;
  options.epochs = 1000;
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    std::filesystem::create_symlink("/dev/full", folder / "last.pt.tmp");
    const absl::Status status = (*trainer)->Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(status.message().find((folder / "last.pt").string()),
              absl::string_view::npos)
        << status;
    EXPECT_LT((*trainer)->history().size(), 1000u);  // not only at the end
  });
  EXPECT_EQ(std::filesystem::file_size(folder / "last.pt"), size);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "last.pt"), written);
  EXPECT_FALSE(std::filesystem::exists(
      std::filesystem::symlink_status(folder / "last.pt.tmp")));
}

TEST(TrainerTest, ErrorOfTheLastWriteFailsTheRun) {
  const auto source = Serve(ClassGraph(200, 100), "last_write");
  TrainOptions options = NoisyRun();
  options.epochs = 1;
  const auto folder = TestDirectory("last_write_c");
  options.checkpoint = folder.string();
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    std::filesystem::create_symlink("/dev/full", folder / "last.pt.tmp");
    EXPECT_EQ((*trainer)->Run().code(), absl::StatusCode::kResourceExhausted);
  });
}

// One "attempt start batch" per line; lines that start an attempt have no
// batch.
std::vector<std::string> ConsumedLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) {
    const auto json = nlohmann::json::parse(line);
    lines.push_back(absl::StrCat(json["attempt"].get<int>(), " ",
                                 json["checkpoint"].get<std::string>()));
    if (json.contains("batch")) {
      absl::StrAppend(&lines.back(), " ", json["batch"].get<int>());
    }
  }
  return lines;
}

// Attempts that end before their first checkpoint have numbers too, and a
// resume never empties the log.
TEST(TrainerTest, EveryAttemptIsNumbered) {
  const auto source = Serve(ClassGraph(200, 64), "attempts");
  TrainOptions options = SmallRun();
  options.epochs = 1;
  const auto directory = TestDirectory("attempts_out");
  options.consumed_log = (directory / "consumed").string();
  options.checkpoint = (directory / "run").string();
  options.checkpoint_every = 2;
  options.resume = true;
  for (const uint32_t dies_at : {1u, 1u, 3u, 3u, 9u}) {
    const auto breaking = BreakingSource(source, 0, dies_at);
    RunRanks(1, [&](Collectives& collectives) {
      auto trainer = Trainer::Create(breaking, collectives, options);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      collectives.Fail((*trainer)->Run());
    });
  }
  EXPECT_THAT(ConsumedLines(options.consumed_log),
              ElementsAre("0 0:0", "0 0:0 0", "1 0:0", "1 0:0 0", "2 0:0",
                          "2 0:0 0", "2 0:0 1", "2 0:0 2", "3 0:2", "3 0:2 2",
                          "4 0:2", "4 0:2 2", "4 0:2 3"));
  // Another evaluation is not an attempt and makes no line void.
  options.epochs = 0;
  const auto lines = ConsumedLines(options.consumed_log).size();
  TrainRanks(1, source, options);
  EXPECT_EQ(ConsumedLines(options.consumed_log).size(), lines);
}

// One rank leaves three batches, too few for four ranks; the lines of the
// second attempt are void nevertheless.
TEST(TrainerTest, AttemptsWithoutAStepStillWriteTheirLine) {
  const auto source = Serve(ClassGraph(300, 100), "no_step");
  TrainOptions options = SmallRun();
  options.job.drop_last = true;  // 6 batches
  options.epochs = 1;
  const auto directory = TestDirectory("no_step_out");
  options.consumed_log = (directory / "consumed").string();
  options.checkpoint = (directory / "run").string();
  options.checkpoint_every = 3;
  const auto breaking = BreakingSource(source, 0, 5);
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(breaking, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_FALSE((*trainer)->Run().ok());
  });
  options.resume = true;
  TrainRanks(4, source, options);
  EXPECT_THAT(ConsumedLines(options.consumed_log),
              ElementsAre("0 0:0", "0 0:0 0", "0 0:0 1", "0 0:0 2", "0 0:0 3",
                          "0 0:0 4", "1 0:3"));
}

// A run is killed after best.pt was written and before last.pt was. It
// continues differently (here with another --lr), so the best model must be one
// of its own.
TEST(TrainerTest, BestModelOfALostAttemptIsNotKept) {
  const auto source = Serve(ClassGraph(400, 200), "lost_best");
  TrainOptions options = SmallRun();
  options.optimizer.lr = 1e-9;
  options.epochs = 1;
  options.valid_split = "test";
  options.keep_best = true;
  const auto directory = TestDirectory("lost_best_out");
  options.consumed_log = (directory / "consumed").string();
  const auto folder = directory / "run";
  options.checkpoint = folder.string();
  TrainRanks(1, source, options);
  std::filesystem::copy_file(folder / "last.pt", directory / "last.pt");
  options.resume = true;
  options.epochs = 10;
  options.optimizer.lr = 0.01;
  const auto better = TrainRanks(1, source, options);
  std::filesystem::rename(directory / "last.pt", folder / "last.pt");
  const auto attempt_of_best = [&folder] {
    const std::string path = (folder / "best.pt").string();
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    return ParseCheckpoint(bytes, path).value().counters.at("attempt");
  };
  ASSERT_EQ(attempt_of_best(), 1);
  options.epochs = 2;
  options.optimizer.lr = 1e-9;
  const auto worse = TrainRanks(1, source, options);
  ASSERT_LT(worse.back().metrics.valid, better.back().metrics.valid);
  EXPECT_EQ(attempt_of_best(), 2);
}

// One rank leaves two whole batches of epoch 1, too few for three ranks.
TEST(TrainerTest, DropLastResumesInALargerWorld) {
  const auto source = Serve(ClassGraph(300, 100), "drop_last");
  TrainOptions options = SmallRun();
  options.job.drop_last = true;  // 6 batches per epoch
  options.epochs = 3;
  const auto directory = TestDirectory("drop_last_out");
  options.consumed_log = (directory / "consumed").string();
  options.checkpoint = (directory / "run").string();
  options.checkpoint_every = 1;
  const auto breaking = BreakingSource(source, 1, 4);
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(breaking, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_FALSE((*trainer)->Run().ok());
  });
  options.resume = true;
  const auto resumed = TrainRanks(3, source, options);
  ASSERT_EQ(resumed.size(), 2u);
  EXPECT_EQ(resumed[0].epoch, 1u);
  EXPECT_EQ(resumed[0].step, 4u);
  EXPECT_EQ(resumed[1].epoch, 2u);
  EXPECT_EQ(resumed[1].step, 2u);
  std::map<int, std::set<int64_t>> seen;  // epoch -> seeds
  std::map<int, size_t> count;
  std::ifstream lines(options.consumed_log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("batch")) continue;  // the start of an attempt
    for (const int64_t seed : json["seeds"]) {
      EXPECT_TRUE(seen[json["epoch"]].insert(seed).second) << line;
    }
  }
  for (const auto& [epoch, seeds] : seen) count[epoch] = seeds.size();
  EXPECT_EQ(count, (std::map<int, size_t>{{0, 96}, {1, 64}, {2, 96}}));
}

TEST(TrainerTest, SaysWhereItResumes) {
  const auto source = Serve(ClassGraph(200, 100), "says_where");
  TrainOptions options = SmallRun();
  options.epochs = 1;
  const auto folder = TestDirectory("says_where_c");
  options.checkpoint = folder.string();
  const auto log_of_run = [&] {
    CapturedOutput output(STDOUT_FILENO);  // where spdlog writes in tests
    TrainRanks(2, source, options);
    return output.Stop();
  };
  EXPECT_THAT(log_of_run(),
              Not(AnyOf(HasSubstr("resumed"), HasSubstr("beginning"))));
  options.resume = true;
  EXPECT_THAT(log_of_run(),
              HasSubstr("resumed checkpoint=" + (folder / "last.pt").string() +
                        " epoch=1 batch=0"));
  std::filesystem::remove(folder / "last.pt");
  EXPECT_THAT(log_of_run(),
              HasSubstr("no checkpoint: training starts at the beginning "
                        "folder=" +
                        folder.string()));
}

TEST(TrainerTest, ResumesWithAddedSplitsButNotWithChangedOnes) {
  const TestGraph graph = ClassGraph(200, 100);
  TrainOptions options = SmallRun();
  options.epochs = 1;
  options.checkpoint = TestDirectory("added_splits_c").string();
  TrainRanks(1, Serve(graph, "added_splits"), options);
  options.resume = true;
  for (const char* name : {"train", "valid"}) {
    TestGraph other = graph;
    for (auto& split : other.splits) {
      if (split.name == name) split.ids.back() = 199;
    }
    const auto source = Serve(other, "added_splits_other");
    RunRanks(1, [&](Collectives& collectives) {
      const absl::Status status =
          Trainer::Create(source, collectives, options).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("split " + std::string(name) + " of node "));
    });
  }
  TestGraph more = graph;
  more.splits.push_back({.name = "more", .ids = {1, 2, 3}});
  options.epochs = 2;
  const auto resumed = TrainRanks(1, Serve(more, "added_splits_more"), options);
  EXPECT_EQ(resumed.back().epoch, 1u);
}

TEST(TrainerTest, RefusesRanksWithDifferentSplits) {
  const TestGraph graph = ClassGraph(200, 100);
  TestGraph changed = graph;
  changed.splits[0].ids.back() = 199;
  const auto source = Serve(graph, "ranks_split");
  const auto other = Serve(changed, "ranks_other_split");
  const absl::Status status =
      CreateTrainers({source, other}, {SmallRun(), SmallRun()})[1];
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1 reads the splits "));
}

TEST(TrainerTest, RefusesADamagedCheckpoint) {
  const auto source = Serve(ClassGraph(200, 100), "damaged");
  TrainOptions options = SmallRun();
  options.epochs = 1;
  const auto folder = TestDirectory("damaged_c");
  options.checkpoint = folder.string();
  options.resume = true;
  const auto refuses = [&] {
    RunRanks(1, [&](Collectives& collectives) {
      const absl::Status status =
          Trainer::Create(source, collectives, options).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr((folder / "last.pt").string()));
    });
  };
  std::ofstream(folder / "last.pt").flush();  // empty, but present
  refuses();
  std::filesystem::remove(folder / "last.pt");
  TrainRanks(1, source, options);
  std::fstream file(folder / "last.pt",
                    std::ios::in | std::ios::out | std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  file.seekp(static_cast<std::streamoff>(content.find("archive/data/0") + 64));
  file << std::string(64, 'x');
  file.close();
  refuses();
}

TEST(TrainerTest, RefusesRanksWithDifferentStores) {
  const auto source = Serve(ClassGraph(200, 100), "ranks_store");
  const auto other = Serve(ClassGraph(300, 100), "ranks_other");
  const absl::Status status =
      CreateTrainers({source, other}, {SmallRun(), SmallRun()})[1];
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 1 reads the dataset " +
                              other->manifest().dataset_fingerprint),
                    HasSubstr("rank 0 the dataset " +
                              source->manifest().dataset_fingerprint)));
  EXPECT_EQ(ReasonOf(status), "ranks_read_other_stores");
}

TEST(TrainerTest, RefusesLayersThatDoNotFitTheFanouts) {
  TrainOptions options = SmallRun();
  options.model.layers = 3;
  const absl::Status layers = Refusal(ClassGraph(100, 20), options);
  EXPECT_EQ(layers.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(layers.message().find("layers 3: does not fit the 2 numbers of "
                                  "fanouts"),
            0u)
      << layers;
  options = SmallRun();
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {5};
  EXPECT_NE(
      Refusal(ClassGraph(100, 20), options).message().find("eval_fanouts"),
      absl::string_view::npos);
}

TEST(TrainerTest, RefusesFilesThatItCouldNotWriteLater) {
  const auto directory = TestDirectory("refused_files");
  std::ofstream(directory / "file") << "not a folder";
  for (const auto& path : {directory / "absent" / "out.npy",
                           directory / "file" / "out.npy", directory}) {
    TrainOptions options = SmallRun();
    options.predict = path.string();
    const absl::Status status = Refusal(ClassGraph(100, 20), options);
    EXPECT_EQ(status.message().find("predict: "), 0u) << status;
  }
  TrainOptions options = SmallRun();
  options.checkpoint = (directory / "file" / "run").string();
  options.resume = true;
  const absl::Status status = Refusal(ClassGraph(100, 20), options);
  EXPECT_EQ(status.message().find("checkpoint: "), 0u) << status;
}

TEST(TrainerTest, RefusesAnotherJobsCheckpoint) {
  const auto source = Serve(ClassGraph(200, 50), "another_job");
  TrainOptions options = SmallRun();
  options.checkpoint = (TestDirectory("another_job_c") / "run").string();
  TrainRanks(1, source, options);
  options.resume = true;
  options.job.fanouts = {3, 3};
  RunRanks(1, [&](Collectives& collectives) {
    const auto trainer = Trainer::Create(source, collectives, options);
    EXPECT_EQ(trainer.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(trainer.status().message().find(
                  "fanouts 3,3: the checkpoint was made with 3,2"),
              absl::string_view::npos)
        << trainer.status();
  });
}

TEST(TrainerTest, RefusesAGraphWithoutFeatures) {
  TestGraph graph = ClassGraph(100, 20);
  graph.types[0].feature = {};
  const auto source = Serve(graph, "no_features");
  RunRanks(1, [&](Collectives& collectives) {
    const auto trainer = Trainer::Create(source, collectives, SmallRun());
    EXPECT_EQ(trainer.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(trainer.status()), "no_features");
  });
}

TEST(TrainerTest, PredictsEveryNodeInOriginalOrder) {
  const auto source = Serve(ClassGraph(100, 50), "predict", 3);
  TrainOptions options = SmallRun();
  const auto directory = TestDirectory("predict_out");
  options.predict = (directory / "two.npy").string();
  TrainRanks(2, source, options);
  const Array two = MapNpy(options.predict).value();
  EXPECT_EQ(two.shape(), (std::vector<int64_t>{100, 4}));

  // This run uses the dataset in one partition, with one rank, from the same
  // weights.
  options.checkpoint = (directory / "run").string();
  TrainRanks(2, source, options);
  options.resume = true;
  options.epochs = 0;
  options.predict = (directory / "one.npy").string();
  TrainRanks(1, source, options);
  const Array one = MapNpy(options.predict).value();
  const auto a = one.As<float>();
  const auto b = two.As<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(TrainerTest, StopsWhenPatienceIsExhausted) {
  const auto source = Serve(ClassGraph(200, 50), "patience");
  TrainOptions options = SmallRun();
  options.optimizer.lr = 1e-12;  // valid never changes
  options.epochs = 20;
  options.patience = 3;
  EXPECT_EQ(TrainRanks(1, source, options).size(), 4u);
}

TEST(TrainerTest, SampledInferenceCountsTheSameSeeds) {
  const auto source = Serve(ClassGraph(200, 50), "sampled_eval");
  TrainOptions options = SmallRun();
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {-1, -1};
  const auto sampled = TrainRanks(2, source, options);
  options.evaluation = {};
  const auto full = TrainRanks(2, source, options);
  EXPECT_EQ(sampled.back().metrics.valid, full.back().metrics.valid);
  EXPECT_EQ(sampled.back().metrics.test, full.back().metrics.test);
}

// Evaluation takes its nodes as explicit seeds.
TEST(TrainerTest, InductiveTrainingEvaluatesOnTheWholeGraph) {
  const auto graph = Serve(ClassGraph(200, 48), "inductive");
  TrainOptions options = SmallRun();
  options.job.train_graph = "train";
  options.epochs = 2;
  for (const auto kind : {InferenceKind::kSampled, InferenceKind::kFull}) {
    options.evaluation.kind = kind;
    std::atomic<int> whole = 0, induced = 0;  // batches of these graphs
    const auto source = std::make_shared<WatchedSource>(
        graph, [&](const ResolvedJob& job, const BatchRequest& request) {
          const bool of_whole = job.spec.train_graph.empty();
          ++(of_whole ? whole : induced);
          EXPECT_TRUE(of_whole || !request.explicit_seeds.has_value());
          return absl::OkStatus();
        });
    EXPECT_EQ(TrainRanks(1, source, options).size(), 2u);
    EXPECT_EQ(induced, 2 * 48 / 16);
    EXPECT_GE(whole, 2);
  }
}

// Lines of stdout that begin with "best epoch".
std::vector<std::string> BestLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("best epoch")) lines.push_back(line);
  }
  return lines;
}

TEST(TrainerTest, AnEvaluationAloneHasNoBestEpoch) {
  const auto source = Serve(ClassGraph(200, 50), "evaluated_alone");
  TrainOptions options = SmallRun();
  options.epochs = 0;
  CaptureStdout();
  const auto history = TrainRanks(1, source, options);
  EXPECT_THAT(BestLines(GetCapturedStdout()), ElementsAre());
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].epoch, 0u);
  EXPECT_EQ(history[0].loss, std::nullopt);
  EXPECT_TRUE(history[0].metrics.valid.has_value());
}

// A later evaluation, even a better one by another split, is not one of the
// run's epochs.
TEST(TrainerTest, AnEvaluationAloneLeavesTheBestEpochAsItIs) {
  TestGraph graph = ClassGraph(200, 50);
  std::vector<std::string> classes;
  for (int64_t c = 0; c < 4; ++c) {
    TestSplit split{.name = absl::StrCat("class", c)};
    for (int64_t v = 100 + c; v < 200; v += 4) split.ids.push_back(v);
    graph.splits.push_back(split);
    classes.push_back(split.name);
  }
  const auto source = Serve(graph, "evaluated_later");
  TrainOptions options = SmallRun();
  options.epochs = 3;
  const auto last_valid = [&](const std::string& split) {
    options.valid_split = split;
    return *TrainRanks(1, source, options).back().metrics.valid;
  };
  std::map<double, std::string> by_valid;
  for (const std::string& split : classes) by_valid[last_valid(split)] = split;
  const auto [worst, worst_split] = *by_valid.begin();
  const auto [most, best_split] = *by_valid.rbegin();
  options.checkpoint = TestDirectory("evaluated_later_c").string();
  CaptureStdout();
  last_valid(worst_split);
  const auto lines = BestLines(GetCapturedStdout());
  ASSERT_EQ(lines.size(), 1u);
  options.resume = true;
  options.epochs = 0;
  CaptureStdout();
  EXPECT_EQ(last_valid(best_split), most);
  EXPECT_EQ(BestLines(GetCapturedStdout()), lines);
  EXPECT_LT(worst, most);
}

TEST(TrainerTest, EvaluatesEverySoManyEpochsAndAfterTheLast) {
  const auto source = Serve(ClassGraph(200, 50), "eval_every");
  TrainOptions options = SmallRun();
  options.epochs = 5;
  for (const auto& [every, want] :
       {std::pair(1u, std::vector{true, true, true, true, true}),
        std::pair(2u, std::vector{false, true, false, true, true}),
        std::pair(0u, std::vector{false, false, false, false, true})}) {
    options.eval_every = every;
    std::vector<bool> evaluated;
    for (const MetricsRecord& record : TrainRanks(1, source, options)) {
      EXPECT_TRUE(record.loss.has_value());
      EXPECT_EQ(record.step, 4u);  // batches of 16 of 50 seeds
      EXPECT_EQ(record.eval_seconds > 0, record.metrics.valid.has_value());
      evaluated.push_back(record.metrics.valid.has_value());
    }
    EXPECT_EQ(evaluated, want) << every;
  }
}

TEST(TrainerTest, KeepsTheBestModelIfAsked) {
  const auto source = Serve(ClassGraph(200, 50), "keep_best");
  TrainOptions options = SmallRun();
  for (const bool keep : {false, true}) {
    const auto folder = TestDirectory("keep_best_c");
    options.checkpoint = folder.string();
    options.keep_best = keep;
    TrainRanks(1, source, options);
    EXPECT_EQ(std::filesystem::exists(folder / "best.pt"), keep);
    EXPECT_TRUE(std::filesystem::exists(folder / "last.pt"));
  }
}

Checkpoint ReadBack(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return ParseCheckpoint(bytes, path.string()).value();
}

// The model of the best epoch is in best.pt, whatever came later.
TEST(TrainerTest, TheBestModelIsThatOfTheBestEpoch) {
  const auto source = Serve(ClassGraph(200, 50), "best_model");
  TrainOptions options = SmallRun();
  options.optimizer.lr = 0.3;
  options.epochs = 8;
  options.keep_best = true;
  const auto folder = TestDirectory("best_model_c");
  options.checkpoint = folder.string();
  const auto trained = TrainRanks(1, source, options);
  uint32_t best = 0;
  for (const MetricsRecord& record : trained) {
    if (*record.metrics.valid > *trained[best].metrics.valid) {
      best = record.epoch;
    }
  }
  EXPECT_EQ(ReadBack(folder / "best.pt").counters.at("epoch"), best + 1);
  EXPECT_EQ(ReadBack(folder / "best.pt").counters.at("best_epoch"), best);
  EXPECT_EQ(ReadBack(folder / "last.pt").counters.at("best_epoch"), best);
  EXPECT_EQ(ReadBack(folder / "last.pt").counters.at("epoch"), 8);
}

TEST(TrainerTest, ACheckpointSaysWhereTheRunIs) {
  const auto source = Serve(ClassGraph(200, 100), "counters");
  TrainOptions options = SmallRun();
  const auto folder = TestDirectory("counters_c");
  options.checkpoint = folder.string();
  TrainRanks(2, source, options);
  // Two epochs of 7 batches, so of 4 steps of two ranks each.
  const Checkpoint whole = ReadBack(folder / "last.pt");
  EXPECT_EQ(whole.counters.at("world"), 2);
  EXPECT_EQ(whole.counters.at("epoch"), 2);
  EXPECT_EQ(whole.counters.at("next_batch"), 0);
  EXPECT_EQ(whole.counters.at("step"), 0);
  EXPECT_EQ(whole.counters.at("optimizer_steps"), 8);
  EXPECT_EQ(whole.counters.at("labelled"), 0);
  EXPECT_EQ(whole.counters.at("correct"), 0);
  EXPECT_EQ(whole.values.at("loss_sum"), 0);
  EXPECT_TRUE(whole.values.contains("best_valid"));

  options.resume = true;
  options.epochs = 3;
  options.checkpoint_every = 3;
  const auto breaking = BreakingSource(source, 2, 6);
  RunRanks(2, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(breaking, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    collectives.Fail((*trainer)->Run());
  });
  const Checkpoint part = ReadBack(folder / "last.pt");
  EXPECT_EQ(part.counters.at("epoch"), 2);
  EXPECT_EQ(part.counters.at("next_batch"), 6);
  EXPECT_EQ(part.counters.at("step"), 3);
  EXPECT_EQ(part.counters.at("optimizer_steps"), 11);
  EXPECT_EQ(part.counters.at("labelled"), 6 * 16);
  EXPECT_GT(part.counters.at("correct"), 0);
  EXPECT_GT(part.values.at("loss_sum"), 0);
}

// Sampled inference does not evaluate the seeds of training, so their accuracy
// is that of the steps.
TEST(TrainerTest, TrainAccuracyOfStepsIsTheShareOfCorrectSeeds) {
  const auto source = Serve(ClassGraph(200, 50), "train_accuracy");
  TrainOptions options = SmallRun();
  options.evaluation.kind = InferenceKind::kSampled;
  options.epochs = 1;
  const auto folder = TestDirectory("train_accuracy_c");
  const auto accuracy =
      TrainRanks(1, source, options).back().metrics.train.value();
  EXPECT_GT(accuracy, 0);
  EXPECT_LE(accuracy, 1);
  EXPECT_NEAR(accuracy * 50, std::round(accuracy * 50), 1e-9);
  options.job.batch_size = 50;
  options.optimizer.lr = 1e-12;
  options.job.fanouts = {-1, -1};
  const double steps =
      TrainRanks(1, source, options).back().metrics.train.value();
  options.evaluation = {};
  EXPECT_EQ(TrainRanks(1, source, options).back().metrics.train, steps);
  // Other metrics are not known from the steps.
  options.evaluation.kind = InferenceKind::kSampled;
  options.task.metric = MetricKind::kF1Micro;
  const auto record = TrainRanks(1, source, options).back();
  EXPECT_EQ(record.metrics.train, std::nullopt);
  EXPECT_TRUE(record.metrics.valid.has_value());
}

TEST(TrainerTest, NamesTheStepWhoseLossIsNotFinite) {
  TestGraph graph = ClassGraph(200, 50);
  Array feature = graph.types[0].feature;
  for (float& cell : feature.MutableAs<float>()) cell = std::nanf("");
  const auto source = Serve(graph, "not_finite");
  RunRanks(1, [&](Collectives& collectives) {
    for (const auto& [precision, reason] :
         {std::pair(Precision::kFloat32, "loss_not_finite"),
          std::pair(Precision::kBfloat16, "loss_not_finite_in_bf16")}) {
      TrainOptions options = SmallRun();
      options.model.precision = precision;
      auto trainer = Trainer::Create(source, collectives, options);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      const absl::Status status = (*trainer)->Run();
      EXPECT_TRUE(absl::IsOutOfRange(status));
      EXPECT_EQ(status.message(), "the loss of epoch 0, step 1 is not finite");
      EXPECT_EQ(ReasonOf(status), reason);
    }
  });
}

TEST(TrainerTest, LearnsWithProductsInBfloat16) {
  const auto source = Serve(ClassGraph(200, 100), "bfloat16");
  TrainOptions options = SmallRun();
  options.model.precision = Precision::kBfloat16;
  options.epochs = 30;
  options.checkpoint = (TestDirectory("bfloat16_c") / "c").string();
  const auto whole = TrainRanks(2, source, options);
  ASSERT_EQ(whole.size(), 30u);
  EXPECT_LT(*whole.back().loss, 0.7 * *whole.front().loss);
  // Its checkpoints are for runs with this precision.
  options.resume = true;
  options.model.precision = Precision::kFloat32;
  EXPECT_TRUE(absl::IsFailedPrecondition(Refusal(source, options)));
}

TEST(TrainerTest, NamesASplitTooSmallForAStep) {
  const auto source = Serve(ClassGraph(200, 20), "no_steps");
  TrainOptions options = SmallRun();
  options.job.batch_size = 21;
  options.job.drop_last = true;
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source, collectives, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status status = (*trainer)->Run();
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_EQ(status.message(), "an epoch has no step: the split has 20 seeds");
    EXPECT_EQ(ReasonOf(status), "epoch_without_steps");
  });
  options.job.batch_size = 20;
  EXPECT_EQ(TrainRanks(1, source, options).size(), 2u);
}

// Once patience is over, the run only evaluates.
TEST(TrainerTest, ARunOutOfPatienceDoesNotGoOn) {
  const auto source = Serve(ClassGraph(200, 50), "patience_over");
  TrainOptions options = SmallRun();
  options.optimizer.lr = 1e-12;
  options.epochs = 20;
  options.patience = 1;
  options.checkpoint = TestDirectory("patience_over_c").string();
  EXPECT_EQ(TrainRanks(1, source, options).size(), 2u);
  options.resume = true;
  const auto rest = TrainRanks(1, source, options);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].epoch, 2u);
  EXPECT_EQ(rest[0].loss, std::nullopt);
  options.patience = 3;
  EXPECT_EQ(TrainRanks(1, source, options).size(), 2u);
}

TEST(TrainerTest, TimesOfAnEpochAddUp) {
  const auto source = Serve(ClassGraph(200, 50), "times");
  for (const MetricsRecord& record : TrainRanks(1, source, SmallRun())) {
    EXPECT_GT(record.wait_seconds, 0);
    EXPECT_GT(record.copy_seconds, 0);
    EXPECT_GT(record.compute_seconds, 0);
    EXPECT_GT(record.cpu_seconds, 0);
    EXPECT_LE(
        record.wait_seconds + record.copy_seconds + record.compute_seconds,
        record.seconds);
  }
}

// Adam keeps two more values for each of the 172 weights than gradient descent.
TEST(TrainerTest, RefusesAModelThatNoMemoryHolds) {
  TrainOptions options = SmallRun();
  options.ranks_on_host = 1'000'000'000;
  const absl::Status adam = Refusal(ClassGraph(100, 20), options);
  EXPECT_TRUE(absl::IsResourceExhausted(adam)) << adam;
  EXPECT_THAT(std::string(adam.message()),
              ::testing::StartsWith(
                  "training a model with 6 features, 8 hidden columns and 4 "
                  "outputs in 1000000000 trainers needs 3.8 TiB of memory"));
  EXPECT_EQ(ReasonOf(adam), "model_too_large");
  options.optimizer.kind = OptimizerKind::kSgd;
  EXPECT_THAT(std::string(Refusal(ClassGraph(100, 20), options).message()),
              HasSubstr(" needs 2.5 TiB of memory"));
}

}  // namespace
}  // namespace millrace::testing
