// SPDX-License-Identifier: Apache-2.0
// Whole runs on a device whose memory the host cannot touch: their losses,
// metrics, predictions and checkpoints have the bits of runs on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "tests/support/pretend_accelerator.h"
#include "tests/support/pretend_device.h"
#include "tests/support/source_on_device.h"
#include "tests/support/watched_source.h"
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

// Trains with a checkpoint in `folder`.
Result Train(const std::shared_ptr<BatchSource>& source, TrainOptions options,
             const std::filesystem::path& folder, Accelerator& accelerator,
             int world = 2) {
  options.checkpoint = (folder / "run").string();
  if (!options.predict.empty())
    options.predict = (folder / "rows.npy").string();
  options.log_every = 1;
  Result result;
  RunRanks(world, [&](Collectives& collectives) {
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

void ExpectSame(const Result& got, const Result& want) {
  EXPECT_EQ(got.lines, want.lines);
  EXPECT_TRUE(got.checkpoint == want.checkpoint) << "checkpoints differ";
  EXPECT_TRUE(got.prediction == want.prediction) << "predictions differ";
}

// Also with batches that lie on the device already, as GPUs that sample leave
// them.
void ExpectSameBits(const std::shared_ptr<BatchSource>& source,
                    const TrainOptions& options, int world = 2) {
  const std::filesystem::path folder = TestDirectory("pretend");
  for (const char* const run : {"cpu", "pretend", "left"}) {
    std::filesystem::create_directory(folder / run);
  }
  PretendAccelerator pretend;
  const Result want =
      Train(source, options, folder / "cpu", CpuAccelerator(), world);
  EXPECT_GE(want.lines.size(), 2u);
  EXPECT_FALSE(want.checkpoint.empty());
  ExpectSame(Train(source, options, folder / "pretend", pretend, world), want);
  const auto leaving = std::make_shared<SourceOnDevice>(source);
  ExpectSame(Train(leaving, options, folder / "left", pretend, world), want);
  EXPECT_GT(leaving->left(), 0);
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

TEST(PretendTrainerTest, ConvertsFeaturesLikeTheCpu) {
  TrainOptions options = RunOf(ModelKind::kSage);
  options.feature_dtype = DType::kFloat16;
  ExpectSameBits(Serve(ClassGraph(120, 60), "pretend_float16"), options);
}

TEST(PretendTrainerTest, WeighsSampledNeighborsLikeTheCpu) {
  TrainOptions options = RunOf(ModelKind::kGcn);
  options.model.gcn_norm = GcnNorm::kSampled;
  ExpectSameBits(Serve(ClassGraph(120, 60), "pretend_norm"), options);
}

TEST(PretendTrainerTest, SampledEvaluationIsLikeTheCpus) {
  TrainOptions options = RunOf(ModelKind::kSage);
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
                         ::testing::Values(ModelKind::kGat, ModelKind::kRgcn),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

TEST(PretendTrainerTest, MeasuresAnyTaskLikeTheCpu) {
  for (const char* const words : {"single rocauc", "multi f1-macro",
                                  "binary rocauc", "regression rmse"}) {
    SCOPED_TRACE(words);
    const std::vector<std::string> parts = absl::StrSplit(words, ' ');
    TrainOptions options = SmallRun();
    options.task = Task::Parse(parts[0], parts[1]).value();
    TestGraph graph = ClassGraph(120, 60);
    const auto classes = graph.types[0].label.As<int64_t>();
    Array label = Array::Allocate(DType::kFloat32, {120, 1});
    auto cells = label.MutableAs<float>();
    for (int64_t v = 0; v < 120; ++v) {
      cells[v] =
          v % 10 == 0 ? std::nanf("") : static_cast<float>(classes[v] > 1);
    }
    graph.types[0].label = label;
    ExpectSameBits(Serve(graph, StrCat("pretend_", parts[0])), options);
  }
}

// Four nodes in each of 24 graphs.
TEST(PretendTrainerTest, PoolsGraphsLikeTheCpu) {
  TestGraph graph = ClassGraph(96, 48);
  std::vector<int64_t> label;
  Edges members;
  for (int64_t g = 0; g < 24; ++g) label.push_back(g % 2);
  for (int64_t v = 0; v < 96; ++v) members.emplace_back(v, v / 4);
  graph.types[0].label = {};
  graph.types.push_back(
      {.name = "graph", .count = 24, .label = Array::Adopt(std::move(label))});
  graph.relations.push_back({.name = "in", .dst = "graph", .edges = members});
  graph.splits = {{.type = "graph", .name = "train", .ids = {0, 1, 2, 3, 4, 5}},
                  {.type = "graph", .name = "valid", .ids = {6, 7, 8, 9}}};
  TrainOptions options = SmallRun();
  options.job.seed_kind = SeedKind::kGraph;
  options.job.fanouts.clear();
  options.job.batch_size = 2;
  options.model.kind = ModelKind::kGin;
  options.model.dropout = 0.5;
  options.evaluation.kind = InferenceKind::kSampled;
  ExpectSameBits(Serve(graph, "pretend_graphs"), options);
}

TEST(PretendTrainerTest, LearnsEdgesLikeTheCpu) {
  TestGraph graph = ClassGraph(120, 60);
  const Edges edges = graph.relations[0].edges;
  const std::vector<LinkSplit> splits = {
      {"", "train", {edges.begin(), edges.begin() + 200}},
      {"", "valid", {edges.begin() + 200, edges.begin() + 240}}};
  const auto source = ServeLinks(graph, splits, "pretend_links", 1);
  TrainOptions options = LinkRun();
  options.model.decoder = DecoderKind::kDistMult;
  options.evaluation.kind = InferenceKind::kSampled;
  ExpectSameBits(source, options);
  options.job.negatives = {NegativeMode::kInBatch, 1};
  options.task.negatives = NegativeMode::kInBatch;
  options.task.loss = LinkLoss::kSoftmax;
  options.task.metric = MetricKind::kMrr;
  ExpectSameBits(source, options);
  options.job.negatives = {NegativeMode::kShared, 16};
  options.task.negatives = NegativeMode::kShared;
  TrainOptions embedding = options;
  embedding.model.kind = ModelKind::kEmbedding;
  embedding.model.layers = 0;
  embedding.job.fanouts = {0};
  ExpectSameBits(source, embedding);
  // Ranks among all nodes need edges that are not in the graph.
  graph.relations[0].edges.resize(200);
  options.evaluation.kind = InferenceKind::kFull;
  options.evaluation.negatives = EvalNegatives::kAll;
  ExpectSameBits(ServeLinks(graph, splits, "pretend_ranks", 1), options);
}

// Ranks in one process would share the generator of the script's dropout.
TEST(PretendTrainerTest, RunsScriptsLikeTheCpu) {
  TrainOptions options = SmallRun();
  options.model.kind = ModelKind::kScript;
  options.model.script = SaveScript(SageScript(6, 8, 4, 1, 0.5),
                                    TestDirectory("pretend_script") / "s.pt");
  options.evaluation.kind = InferenceKind::kSampled;
  ExpectSameBits(Serve(ClassGraph(120, 60), "pretend_scripts"), options,
                 /*world=*/1);
}

TEST(PretendTrainerTest, AllRanksTrainOnTheSameKindOfDevice) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_kinds");
  // The device counts first, since the backend follows from it.
  PretendAccelerator pretend(Backend::kNccl);
  RunRanks(2, [&](Collectives& collectives) {
    const bool first = collectives.rank() == 0;
    const absl::Status status =
        Trainer::Create(source, collectives, SmallRun(),
                        first ? CpuAccelerator() : pretend)
            .status();
    // The error of rank 1, which it tells rank 0.
    EXPECT_THAT(
        std::string(status.message()),
        ::testing::HasSubstr("device on rank 1: pretend, but on rank 0: cpu"));
    collectives.Fail(status);
  });
}

TEST(PretendTrainerTest, AllRanksHaveTheSameBackend) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_backends");
  PretendAccelerator gloo(Backend::kGloo), nccl(Backend::kNccl);
  RunRanks(2, [&](Collectives& collectives) {
    const bool first = collectives.rank() == 0;
    const absl::Status status =
        Trainer::Create(source, collectives, SmallRun(), first ? nccl : gloo)
            .status();
    EXPECT_THAT(
        std::string(status.message()),
        ::testing::HasSubstr("backend on rank 1: gloo, but on rank 0: nccl"));
    collectives.Fail(status);
  });
}

TEST(PretendTrainerTest, SaysWhichBatchDidNotFitIntoTheDevice) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_memory");
  PretendAccelerator pretend;
  RunRanks(1, [&](Collectives& collectives) {
    for (const auto& [bytes, what] :
         {std::pair(500, "reading"), std::pair(8000, "training on")}) {
      auto trainer =
          Trainer::Create(source, collectives, SmallRun(), pretend).value();
      SetPretendMemory(BytesOfPretendDevice() + bytes);
      const absl::Status status = trainer->Run();
      SetPretendMemory(std::numeric_limits<int64_t>::max());
      EXPECT_TRUE(absl::IsResourceExhausted(status));
      EXPECT_EQ(ReasonOf(status), "out_of_device_memory");
      EXPECT_THAT(std::string(status.message()),
                  ::testing::MatchesRegex(
                      StrCat(what,
                             " a batch of 16 seeds ran out of the device's "
                             "memory when it needed [0-9]+ bytes more")));
    }
  });
}

// Evaluation has options of its own for the memory that it takes.
TEST(PretendTrainerTest, SaysThatEvaluationDidNotFitIntoTheDevice) {
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    TrainOptions options = SmallRun();
    options.evaluation.kind = kind;
    options.evaluation.inference.chunk = 31;
    const auto source = std::make_shared<WatchedSource>(
        Serve(ClassGraph(120, 60), "pretend_evaluation"),
        [](const ResolvedJob& job, const BatchRequest&) {
          if (job.spec.batch_size == 31) {
            SetPretendMemory(BytesOfPretendDevice() + 500);
          }
          return absl::OkStatus();
        });
    PretendAccelerator pretend;
    RunRanks(1, [&](Collectives& collectives) {
      auto trainer =
          Trainer::Create(source, collectives, options, pretend).value();
      const absl::Status status = trainer->Run();
      SetPretendMemory(std::numeric_limits<int64_t>::max());
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(ReasonOf(status), "evaluation_out_of_device_memory");
    });
  }
}

TEST(PretendTrainerTest, ALostDeviceEndsTheRunWithAnError) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_lost");
  PretendAccelerator pretend;
  RunRanks(1, [&](Collectives& collectives) {
    // Copies and steps begin and end with events.
    for (int events = 0; events < 12; ++events) {
      auto trainer =
          Trainer::Create(source, collectives, SmallRun(), pretend).value();
      LimitPretendEvents(events);
      const absl::Status status = trainer->Run();
      LimitPretendEvents(std::numeric_limits<int64_t>::max());
      EXPECT_TRUE(absl::IsInternal(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  ::testing::HasSubstr("the device is lost"));
    }
  });
}

// A request for a batch takes long on the host, also one that copying ahead
// makes.
TEST(PretendTrainerTest, TimesDoNotCountOtherWorkOfTheHost) {
  absl::Duration asked;
  const auto source = std::make_shared<WatchedSource>(
      Serve(ClassGraph(120, 60), "pretend_times"),
      [&asked](const ResolvedJob& job, const BatchRequest&) {
        if (job.spec.batch_size != 8) return absl::OkStatus();
        const SteadyTime start = SteadyNow();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        asked += SteadyNow() - start;
        return absl::OkStatus();
      });
  TrainOptions options = SmallRun();
  options.job.batch_size = 8;
  PretendAccelerator pretend;
  RunRanks(1, [&](Collectives& collectives) {
    auto trainer =
        Trainer::Create(source, collectives, options, pretend).value();
    asked = absl::ZeroDuration();
    ASSERT_TRUE(trainer->Run().ok());
    double others = 0;
    for (const MetricsRecord& record : trainer->history()) {
      EXPECT_GT(record.compute_seconds, 0);
      others += record.seconds - record.wait_seconds - record.copy_seconds -
                record.compute_seconds;
    }
    EXPECT_GT(others, 0.9 * absl::ToDoubleSeconds(asked));
  });
}

// Finding out how far the device has got takes time in each step. LibTorch also
// asks when it measures the time between two events.
TEST(PretendTrainerTest, AsksLessForTheDevicesProgressIfNobodyWatches) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_watched");
  PretendAccelerator pretend;
  const auto queries = [&](std::shared_ptr<RunMonitor> monitor) {
    const int64_t before = EventQueriesOfPretendDevice();
    RunRanks(1, [&](Collectives& collectives) {
      auto trainer = Trainer::Create(source, collectives, SmallRun(), pretend,
                                     std::move(monitor))
                         .value();
      EXPECT_TRUE(trainer->Run().ok());
    });
    return EventQueriesOfPretendDevice() - before;
  };
  const auto monitor = std::make_shared<RunMonitor>();
  EXPECT_GT(queries(monitor), queries(nullptr));
  EXPECT_GT(monitor->snapshot().steps, 0u);
}

// A run that changes its device halfway.
TEST(PretendTrainerTest, ResumesOnAnotherDevice) {
  const auto source = Serve(ClassGraph(120, 60), "pretend_resume");
  const TrainOptions options = RunOf(ModelKind::kGatv2);
  PretendAccelerator pretend;
  const std::filesystem::path folder = TestDirectory("pretend_resumes");
  std::filesystem::create_directory(folder / "whole");
  const Result whole =
      Train(source, options, folder / "whole", CpuAccelerator());
  for (const bool pretend_first : {true, false}) {
    const std::filesystem::path half = folder / StrCat("half", pretend_first);
    std::filesystem::create_directory(half);
    TrainOptions part = options;
    part.epochs = 1;
    Accelerator& cpu = CpuAccelerator();
    Train(source, part, half, pretend_first ? pretend : cpu);
    part.epochs = options.epochs;
    part.resume = true;
    const Result rest =
        Train(source, part, half, pretend_first ? cpu : pretend);
    ASSERT_LT(rest.lines.size(), whole.lines.size());
    EXPECT_EQ(rest.lines,
              std::vector<std::string>(whole.lines.end() - rest.lines.size(),
                                       whole.lines.end()));
    EXPECT_TRUE(rest.prediction == whole.prediction) << "predictions differ";
  }
}

}  // namespace
}  // namespace millrace::testing
