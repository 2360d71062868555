// SPDX-License-Identifier: Apache-2.0
// Training on several node types and relations, and on tasks other than one
// class per node.
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "client/train/label_objective.h"
#include "client/train/run/checkpoint.h"
#include "client/train/train_step.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/file/npy.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

TrainOptions TypedRun(ModelKind kind) {
  TrainOptions options = SmallRun();
  options.job.seed_type = "paper";
  options.model.kind = kind;
  options.model.heads = 2;
  options.log_every = 1;
  return options;
}

class TypedTrainerTest : public ::testing::TestWithParam<ModelKind> {};

TEST_P(TypedTrainerTest, LearnsTheClasses) {
  const auto source = Serve(PaperGraph(200, 100), "typed_learns");
  TrainOptions options = TypedRun(GetParam());
  options.model.hidden = 16;
  options.log_every = 0;
  options.epochs = 20;
  const auto history = TrainRanks(1, source, options);
  ASSERT_EQ(history.size(), 20u);
  EXPECT_LT(*history.back().loss, 0.5 * *history.front().loss);
  EXPECT_GT(*history.back().metrics.train, 0.8);
}

TEST_P(TypedTrainerTest, PartitionsDoNotChangeLosses) {
  const TestGraph graph = PaperGraph(120, 60);
  TrainOptions options = TypedRun(GetParam());
  options.model.norm = NormKind::kBatch;
  options.model.dropout = 0.5;
  const auto whole = TrainRanks(2, Serve(graph, "typed_whole"), options);
  const auto parts = TrainRanks(2, Serve(graph, "typed_parts", 3), options);
  EXPECT_FALSE(whole.empty());
  EXPECT_EQ(Losses(whole), Losses(parts));
}

// The gradients include those of embeddings.
TEST_P(TypedTrainerTest, TwoRanksHaveTheGradientOfOneWithBothBatches) {
  const auto source = Serve(PaperGraph(100, 30), "typed_gradient");
  ModelConfig config;
  config.kind = GetParam();
  config.hidden = 8;
  config.heads = 2;
  config.out = 4;
  const GraphShape shape =
      GraphShape::Of(source->manifest().schema, 0, Direction::kIn);
  const auto gradient = [&](int64_t batch_size, int world) {
    JobSpec job;
    job.seed_type = "paper";
    job.fanouts = {-1, -1};
    job.batch_size = batch_size;
    const std::vector<Batch> batches = AllBatches(source, job);
    at::Tensor result;
    RunRanks(world, [&](Collectives& collectives) {
      const auto model = Model::Create(config, shape).value();
      const NodeObjective objective{Task()};
      TrainStep step(*model, collectives, objective);
      const Minibatch minibatch =
          MakeMinibatch(batches[collectives.rank()], *model).value();
      ASSERT_TRUE(step.Run(&minibatch, {}).ok());
      if (collectives.rank() == 0) result = step.gradient().clone();
    });
    return result;
  };
  const at::Tensor want = gradient(30, 1);
  EXPECT_GT(want.abs().max().item().toDouble(), 1e-3);
  EXPECT_TRUE(at::allclose(gradient(20, 2), want, 1e-4, 1e-6));
}
INSTANTIATE_TEST_SUITE_P(Models, TypedTrainerTest,
                         ::testing::Values(ModelKind::kSage, ModelKind::kGat,
                                           ModelKind::kGatv2, ModelKind::kRgcn),
                         [](const auto& info) {
                           return std::string(InfoOf(info.param).name);
                         });

TEST(TypedTrainerTest, CheckpointHoldsEmbeddingsAndContinues) {
  const auto source = Serve(PaperGraph(120, 60), "typed_checkpoint");
  TrainOptions options = TypedRun(ModelKind::kRgcn);
  options.epochs = 4;
  const std::vector<double> baseline = Losses(TrainRanks(2, source, options));
  options.checkpoint = (TestDirectory("typed_run") / "run").string();
  options.epochs = 2;
  TrainRanks(2, source, options);
  options.epochs = 4;
  options.resume = true;
  const std::vector<double> resumed = Losses(TrainRanks(2, source, options));
  ASSERT_LT(resumed.size(), baseline.size());
  EXPECT_EQ(resumed, std::vector<double>(baseline.end() - resumed.size(),
                                         baseline.end()));
  const std::string path = options.checkpoint + "/last.pt";
  const std::string bytes = ReadFile(path, 1 << 20).value();
  const Checkpoint saved = ParseCheckpoint(bytes, path).value();
  std::vector<std::string> names;
  for (const NamedTensor& named : saved.model) names.push_back(named.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "lin_dict.paper.weight", "lin_dict.paper.bias",
                       "lin_dict.author.weight", "lin_dict.author.bias",
                       "emb_dict.subject.weight", "emb_dict.venue.weight",
                       "convs.0.weight", "convs.0.root", "convs.0.bias",
                       "convs.1.weight", "convs.1.root", "convs.1.bias"}));
}

TEST(TypedTrainerTest, SampledInferencePredictsTheSameRows) {
  const auto source = Serve(PaperGraph(100, 40), "typed_predict", 3);
  TrainOptions options = TypedRun(ModelKind::kSage);
  const auto directory = TestDirectory("typed_predict_out");
  std::vector<Array> rows;
  for (const bool sampled : {false, true}) {
    if (sampled) {
      options.evaluation.kind = InferenceKind::kSampled;
      options.evaluation.fanouts = {-1, -1};
    }
    options.predict = (directory / StrCat(rows.size(), ".npy")).string();
    TrainRanks(2, source, options);
    rows.push_back(MapNpy(options.predict).value());
  }
  ASSERT_EQ(rows[0].shape(), (std::vector<int64_t>{100, 4}));
  const auto a = rows[0].As<float>(), b = rows[1].As<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
}

TEST(TypedTrainerTest, RefusesGcnAndTypesWithoutLabels) {
  const TestGraph graph = PaperGraph(60, 20);
  const absl::Status gcn = Refusal(graph, TypedRun(ModelKind::kGcn));
  EXPECT_EQ(gcn.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(gcn.message().find("model gcn: needs one node type"),
            absl::string_view::npos)
      << gcn;
  TrainOptions options = TypedRun(ModelKind::kSage);
  options.job.seed_type = "author";
  const absl::Status author = Refusal(graph, options);
  EXPECT_EQ(author.code(), absl::StatusCode::kFailedPrecondition) << author;
}

TEST(TypedTrainerTest, RefusesTypesOfEdgesInOneRelation) {
  TestGraph graph = ClassGraph(60, 20);
  graph.relations[0].type.assign(graph.relations[0].edges.size(), 1);
  TrainOptions options = SmallRun();
  options.model.kind = ModelKind::kRgcn;
  EXPECT_EQ(Refusal(graph, options).code(), absl::StatusCode::kUnimplemented);
}

TEST(TypedTrainerTest, ResumesWithTheMetricThatChoseTheBest) {
  const auto source = Serve(PaperGraph(60, 20), "typed_metric");
  TrainOptions options = TypedRun(ModelKind::kSage);
  options.epochs = 1;
  options.checkpoint = (TestDirectory("typed_metric_run") / "run").string();
  TrainRanks(1, source, options);
  options.resume = true;
  options.task.metric = MetricKind::kF1Macro;
  options.epochs = 2;
  const absl::Status resumed = Refusal(PaperGraph(60, 20), options);
  EXPECT_NE(resumed.message().find("the checkpoint was made with accuracy"),
            absl::string_view::npos)
      << resumed;
  options.epochs = 0;
  EXPECT_EQ(TrainRanks(1, source, options).size(), 1u);
}

// The edges of a walk or an induced batch do not follow the hops.
TEST(TypedTrainerTest, TrainsOnWalksAndInducedSubgraphs) {
  const auto source = Serve(ClassGraph(100, 60), "walks");
  for (const SampleMethod method :
       {SampleMethod::kWalk, SampleMethod::kInduced}) {
    TrainOptions options = SmallRun();
    options.job.method = method;
    options.epochs = 20;
    if (method == SampleMethod::kWalk) {
      options.job.fanouts.clear();
      options.job.walks = 3;
      options.job.walk_length = 4;
    }
    const auto history = TrainRanks(1, source, options);
    ASSERT_EQ(history.size(), 20u);
    EXPECT_LT(*history.back().loss, 0.7 * *history.front().loss);
  }
}

TEST(TypedTrainerTest, RefusesFullInferenceOfTemporalJobs) {
  TestGraph graph = ClassGraph(60, 20);
  graph.types[0].time.assign(60, 1);
  TrainOptions options = SmallRun();
  options.job.temporal = TemporalStrategy::kUniform;
  const absl::Status status = Refusal(graph, options);
  EXPECT_EQ(ReasonOf(status), "full_inference_in_time") << status;
}

// Labels derived from the classes, in a form that each task can express.
TestGraph TaskGraph(TaskKind kind) {
  TestGraph graph = ClassGraph(300, 200);
  const int64_t columns = kind == TaskKind::kMulti ? 3 : 1;
  const auto classes = graph.types[0].label.As<int64_t>();
  Array label = Array::Allocate(DType::kFloat32, {300, columns});
  auto cells = label.MutableAs<float>();
  for (int64_t v = 0; v < 300; ++v) {
    for (int64_t k = 0; k < columns; ++k) {
      const auto c = static_cast<float>(classes[v]);
      cells[v * columns + k] = kind == TaskKind::kRegression ? c - 1.5f
                               : classes[v] <= k + 1         ? 1.0f
                                                             : 0.0f;
    }
    if (v % 10 == 0) cells[v * columns] = std::nanf("");
  }
  graph.types[0].label = label;
  return graph;
}

class TaskTrainerTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TaskTrainerTest, Learns) {
  TrainOptions options = SmallRun();
  options.task = Task::Parse(GetParam(), "").value();
  options.model.hidden = 16;
  options.epochs = 30;
  const auto source = Serve(TaskGraph(options.task.kind), "task_learns");
  const auto history = TrainRanks(1, source, options);
  ASSERT_EQ(history.size(), 30u);
  EXPECT_LT(*history.back().loss, 0.5 * *history.front().loss);
  const double test = *history.back().metrics.test;
  if (options.task.kind == TaskKind::kRegression) {
    EXPECT_LT(test, 0.8);  // standard deviation of labels: 1.1
  } else {
    EXPECT_GT(test, 0.85);
  }
}

TEST_P(TaskTrainerTest, SampledInferenceGivesTheSameMetric) {
  TrainOptions options = SmallRun();
  options.task = Task::Parse(GetParam(), "").value();
  const auto source = Serve(TaskGraph(options.task.kind), "task_sampled");
  const auto full = TrainRanks(2, source, options);
  options.evaluation.kind = InferenceKind::kSampled;
  options.evaluation.fanouts = {-1, -1};
  const auto sampled = TrainRanks(2, source, options);
  EXPECT_NEAR(*sampled.back().metrics.valid, *full.back().metrics.valid, 1e-5);
  EXPECT_NEAR(*sampled.back().metrics.test, *full.back().metrics.test, 1e-5);
}
INSTANTIATE_TEST_SUITE_P(Tasks, TaskTrainerTest,
                         ::testing::Values("multi", "binary", "regression"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace millrace::testing
