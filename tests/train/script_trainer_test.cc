// SPDX-License-Identifier: Apache-2.0
// Training of users' own models.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "client/train/run/weights_file.h"
#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "tests/train/script_support.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

TrainOptions ScriptRun(const TestScript& script, const std::string& name) {
  TrainOptions options = SmallRun();
  options.model.kind = ModelKind::kScript;
  options.model.script =
      SaveScript(script, TestDirectory("model_" + name) / "model.pt");
  options.evaluation.kind = InferenceKind::kSampled;
  options.log_every = 1;
  return options;
}

TEST(ScriptTrainerTest, TrainsLikeOurSage) {
  const auto source = Serve(ClassGraph(200, 100), "script_as_ours", 2);
  TrainOptions options = SmallRun();
  options.evaluation.kind = InferenceKind::kSampled;
  options.log_every = 1;
  const std::vector<double> ours = Losses(TrainRanks(2, source, options));
  ModelConfig config = options.model;
  config.in = 6;
  config.out = 4;
  const auto model = Model::Create(config).value();
  const std::vector<double> theirs = Losses(TrainRanks(
      2, source,
      ScriptRun(SageScript(model->parameters().State()), "as_ours")));
  ASSERT_EQ(theirs.size(), ours.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(theirs[i], ours[i], 1e-4);
}

// Bfloat16 has 8 significant bits.
TEST(ScriptTrainerTest, TrainsInBfloat16LikeInFloat32) {
  const auto source = Serve(ClassGraph(200, 100), "script_bf16", 2);
  TrainOptions options = ScriptRun(SageScript(6, 8, 4, 1), "bf16");
  const std::vector<double> exact = Losses(TrainRanks(2, source, options));
  options.model.precision = Precision::kBfloat16;
  const std::vector<double> rounded = Losses(TrainRanks(2, source, options));
  ASSERT_EQ(rounded.size(), exact.size());
  EXPECT_NE(rounded, exact);
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(rounded[i], exact[i], 0.02 * exact[i]);
}

// Notes the dtype of the product, while it trains, in a buffer.
TEST(ScriptTrainerTest, ProductsOfScriptsHaveThePrecision) {
  const auto source = Serve(ClassGraph(100, 40), "script_precision");
  TrainOptions options = ScriptRun({{{"w", at::full({4, 6}, 0.01f)}},
                                    {{"dtype", at::full({1}, -1, at::kLong)}},
                                    R"(
def forward(self, x, edge_index):
    rows = torch.linear(x, self.w)
    if self.training:
        self.dtype = torch.full([1], rows.dtype)
    return rows
)"},
                                   "precision");
  for (const auto& [precision, dtype] :
       {std::pair(Precision::kFloat32, at::kFloat),
        std::pair(Precision::kBfloat16, at::kBFloat16)}) {
    options.model.precision = precision;
    RunRanks(1, [&, dtype = dtype](Collectives& alone) {
      auto trainer = Trainer::Create(source, alone, options).value();
      ASSERT_TRUE(trainer->Run().ok());
      for (const NamedTensor& named : trainer->model().parameters().State()) {
        if (named.name == "w") {
          EXPECT_EQ(named.tensor.scalar_type(), at::kFloat);
          EXPECT_FALSE(named.tensor.eq(0.01f).all().item().toBool());
        } else {
          EXPECT_EQ(named.tensor.item().toLong(), static_cast<int64_t>(dtype));
        }
      }
    });
  }
}

TEST(ScriptTrainerTest, ResumedRunReplaysTheLosses) {
  const auto source = Serve(ClassGraph(200, 100), "script_resume");
  TrainOptions options = ScriptRun(SageScript(6, 8, 4, 1, 0.5), "resume_run");
  options.epochs = 4;
  const std::vector<double> baseline = Losses(TrainRanks(1, source, options));
  options.checkpoint = (TestDirectory("script_run") / "run").string();
  options.epochs = 2;
  TrainRanks(1, source, options);
  options.epochs = 4;
  options.resume = true;
  const std::vector<double> resumed = Losses(TrainRanks(1, source, options));
  ASSERT_EQ(resumed.size(), baseline.size() / 2);
  EXPECT_EQ(resumed, std::vector<double>(baseline.end() - resumed.size(),
                                         baseline.end()));
  // Refuses another script, even if its parameters have the same names.
  const TrainOptions other = ScriptRun(SageScript(6, 8, 4, 2, 0.5), "other");
  options.model.script = other.model.script;
  EXPECT_THAT(std::string(Refusal(ClassGraph(200, 100), options).message()),
              HasSubstr("model script of checksum"));
}

// Computes the rows of papers from all types that have features.
TestScript TypedScript() {
  return {{{"paper", at::full({4, 6}, 0.01f)}, {"author", at::zeros({4, 5})}},
          {},
          R"(
def forward(self, x: Dict[str, Tensor], edges: Dict[str, Tensor]):
    own = torch.linear(x["paper"], self.paper)
    cites = edges["paper__cites__paper"]
    writes = edges["author__writes__paper"]
    authors = torch.linear(x["author"] * 0.001, self.author)
    result = own.index_add(0, cites[1], own[cites[0]])
    result = result.index_add(0, writes[1], authors[writes[0]])
    assert edges["subject__of__paper"].size(0) == 2
    return {"paper": result, "author": authors}
)"};
}

TEST(ScriptTrainerTest, LearnsOnSeveralTypes) {
  TestGraph graph = PaperGraph(200, 100);
  TrainOptions options = ScriptRun(TypedScript(), "typed_run");
  options.job.seed_type = "paper";
  options.epochs = 20;
  options.optimizer.lr = 0.05;
  options.log_every = 0;
  EXPECT_THAT(std::string(Refusal(graph, options).message()),
              HasSubstr("node type subject has no features"));
  for (const size_t type : {2, 3}) {
    graph.types[type].feature = RampFeature(graph.types[type].count, 2);
  }
  const auto source = Serve(graph, "script_typed", 3);
  const auto history = TrainRanks(2, source, options);
  ASSERT_EQ(history.size(), 20u);
  EXPECT_LT(*history.back().loss, 0.7 * *history.front().loss);
  EXPECT_GT(*history.back().metrics.test, 0.6);
}

// Only edge features reveal the class of the node that an edge leads to.
TEST(ScriptTrainerTest, LearnsFromFeaturesOfEdges) {
  TestGraph graph = ClassGraph(200, 100);
  TestRelation& relation = graph.relations[0];
  const auto edges = static_cast<int64_t>(relation.edges.size());
  relation.feature = Array::Allocate(DType::kFloat32, {edges, 4});
  auto cells = relation.feature.MutableAs<float>();
  for (int64_t e = 0; e < edges; ++e) {
    for (int64_t d = 0; d < 4; ++d) {
      cells[e * 4 + d] = d == relation.edges[e].second % 4 ? 1.0f : 0.0f;
    }
  }
  TrainOptions options = ScriptRun({{{"w", at::zeros({4, 4})}},
                                    {},
                                    R"(
def forward(self, x, edge_index, edge_attr: Tensor):
    return torch.zeros([x.size(0), 4]).index_add(
        0, edge_index[1], torch.linear(edge_attr, self.w))
)"},
                                   "edge_features");
  options.epochs = 10;
  options.log_every = 0;
  const auto history =
      TrainRanks(2, Serve(graph, "script_edge_features", 3), options);
  EXPECT_EQ(*history.back().metrics.valid, 1);
  EXPECT_EQ(*history.back().metrics.test, 1);
}

TEST(ScriptTrainerTest, PredictsAllColumnsOfAllNodes) {
  TrainOptions options = ScriptRun(SageScript(6, 8, 5, 1), "predict_run");
  options.predict = (TestDirectory("script_predict_out") / "rows.npy").string();
  TrainRanks(2, Serve(ClassGraph(100, 50), "script_predict"), options);
  EXPECT_EQ(MapNpy(options.predict).value().shape(),
            (std::vector<int64_t>{100, 5}));
}

// The label is the mean of the node's own features.
TEST(ScriptTrainerTest, LearnsColumnsAndNumbers) {
  TestGraph graph = ClassGraph(200, 150);
  const auto features = graph.types[0].feature.As<float>();
  for (const char* word : {"regression", "binary"}) {
    const bool number = std::string(word) == "regression";
    Array label = Array::Allocate(DType::kFloat32, {200, 1});
    for (int64_t v = 0; v < 200; ++v) {
      float sum = 0;
      for (int64_t d = 0; d < 6; ++d) sum += features[v * 6 + d];
      label.MutableAs<float>()[v] = number ? sum / 6 : sum > 3.5f ? 1.f : 0.f;
    }
    graph.types[0].label = label;
    TrainOptions options = ScriptRun(SageScript(6, 8, 1, 1), word);
    options.task = Task::Parse(word, "").value();
    options.epochs = 20;
    options.log_every = 0;
    const auto history = TrainRanks(1, Serve(graph, "script_task"), options);
    EXPECT_LT(*history.back().loss, 0.7 * *history.front().loss) << word;
    options.model.script =
        ScriptRun(SageScript(6, 8, 2, 1), "two_columns").model.script;
    EXPECT_THAT(std::string(Refusal(graph, options).message()),
                HasSubstr("gives 2 columns, but the labels have 1 columns"));
  }
}

TEST(ScriptTrainerTest, PoolsNodeRowsIntoGraphRows) {
  TestGraph graph = ClassGraph(200, 100);
  std::vector<int64_t> label;
  std::vector<std::pair<int64_t, int64_t>> members;
  for (int64_t g = 0; g < 50; ++g) label.push_back(g % 4);
  // Each graph has four nodes, all of its class.
  for (int64_t v = 0; v < 200; ++v) {
    members.emplace_back(v, v / 16 * 4 + v % 4);
  }
  members.erase(members.begin() + 192, members.end());
  graph.types[0].label = {};
  graph.types.push_back(
      {.name = "graph", .count = 50, .label = Array::Adopt(std::move(label))});
  graph.relations.push_back({.name = "in", .dst = "graph", .edges = members});
  graph.splits = {{.type = "graph", .name = "train", .ids = {}},
                  {.type = "graph", .name = "valid", .ids = {}}};
  for (int64_t g = 0; g < 48; ++g) graph.splits[g / 32].ids.push_back(g);
  TrainOptions options = ScriptRun(SageScript(6, 8, 4, 1), "graphs");
  options.job.seed_kind = SeedKind::kGraph;
  options.job.seed_type = "graph";
  options.job.fanouts.clear();
  options.model.readout = Aggregation::kMean;
  options.epochs = 60;
  options.log_every = 0;
  const auto history = TrainRanks(1, Serve(graph, "script_graphs"), options);
  ASSERT_EQ(history.size(), 60u);
  EXPECT_GT(*history.back().metrics.valid, 0.8);
}

TEST(ScriptTrainerTest, LearnsEdges) {
  const TestGraph graph = ClassGraph(200, 100);
  TrainOptions options = ScriptRun(SageScript(6, 8, 8, 1), "edges");
  options.job.seed_kind = SeedKind::kEdge;
  options.job.negatives = {NegativeMode::kBinary, 1};
  options.job.exclude = ExcludeSeedEdges::kReverse;
  options.task.kind = TaskKind::kLink;
  options.task.metric = MetricKind::kRocAuc;
  options.task.negatives = NegativeMode::kBinary;
  options.model.decoder = DecoderKind::kDistMult;
  options.seeds.emplace();
  for (const auto& [src, dst] : graph.relations[0].edges) {
    options.seeds->ids.push_back(src);
    options.seeds->dst.push_back(dst);
  }
  options.epochs = 10;
  options.log_every = 0;
  const auto history = TrainRanks(2, Serve(graph, "script_links"), options);
  ASSERT_EQ(history.size(), 10u);
  EXPECT_LT(*history.back().loss, 0.95 * *history.front().loss);
}

TEST(ScriptTrainerTest, RefusesOptionsThatScriptsDoNotSupport) {
  const TestGraph graph = ClassGraph(100, 20);
  TrainOptions options = ScriptRun(SageScript(6, 8, 3, 1), "three");
  EXPECT_THAT(std::string(Refusal(graph, options).message()),
              HasSubstr("gives 3 columns, but the labels have 4 classes"));
  options = ScriptRun(SageScript(6, 8, 4, 1), "full");
  options.evaluation.kind = InferenceKind::kFull;
  const absl::Status full = Refusal(graph, options);
  EXPECT_EQ(full.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(full), "full_inference_of_script");
  options = ScriptRun(SageScript(5, 8, 4, 1), "width");
  EXPECT_EQ(Refusal(graph, options).code(), absl::StatusCode::kInvalidArgument);
}

// Checkpoints hold everything that models usually have besides parameters.
TEST(ScriptTrainerTest, ResumesWithBuffersOfAnyRealType) {
  const auto source = Serve(ClassGraph(100, 40), "script_buffers");
  TestScript script = SageScript(6, 8, 4, 1);
  script.buffers = {{"seen", at::full({3}, true, at::kBool)},
                    {"short", at::full({}, -7, at::kShort)},
                    {"half", at::full({2, 2}, 0.5, at::kHalf)},
                    {"none", at::zeros({0, 3}, at::kLong)}};
  TrainOptions options = ScriptRun(script, "buffers");
  options.checkpoint = (TestDirectory("script_buffers_run") / "run").string();
  options.epochs = 1;
  TrainRanks(1, source, options);
  options.epochs = 2;
  options.resume = true;
  EXPECT_FALSE(TrainRanks(1, source, options).empty());

  script.buffers = {{"turn", at::zeros({2}, at::kComplexFloat)}};
  options = ScriptRun(script, "complex");
  const TestGraph graph = ClassGraph(100, 40);
  EXPECT_TRUE(Refusal(graph, options).ok());
  options.checkpoint = (TestDirectory("script_complex_run") / "run").string();
  EXPECT_THAT(Refusal(graph, options).message(),
              HasSubstr("tensor turn of " + options.model.script +
                        " is ComplexFloat, which checkpoints cannot hold"));
}

// A script's tensors may have gaps in memory, and any dtype.
TEST(ScriptTrainerTest, EveryRankStartsWithGivenWeights) {
  const auto script = [](double weight) {
    const at::Tensor rows = at::full({8, 6}, weight, at::kFloat);
    return TestScript{{{"w", rows.slice(0, 0, 8, 2)}},
                      {{"mask", at::full({6}, weight > 1, at::kBool)},
                       {"sign", at::full({1}, weight, at::kInt)}},
                      R"(
def forward(self, x, edge_index):
    return self.sign * torch.linear(x * self.mask, self.w)
)"};
  };
  const auto source = Serve(ClassGraph(100, 20), "script_init");
  TrainOptions options = ScriptRun(script(2), "init");
  options.checkpoint = (TestDirectory("script_init_run") / "run").string();
  options.epochs = 1;
  TrainRanks(1, source, options);
  TrainOptions other = ScriptRun(script(1), "init_other");
  other.init = options.checkpoint + "/last.pt";
  const auto want = ReadWeights(other.init).value();
  RunRanks(2, [&](Collectives& collectives) {
    const auto trainer = Trainer::Create(source, collectives, other);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const auto got = (*trainer)->model().parameters().State();
    ASSERT_EQ(got.size(), 3u);
    for (size_t i = 0; i < got.size(); ++i) {
      const at::Tensor given = want[i].tensor.to(got[i].tensor.scalar_type());
      EXPECT_TRUE(got[i].tensor.equal(given)) << got[i].name;
    }
  });
  other.model.script =
      ScriptRun(SageScript(6, 8, 4, 1), "init_sage").model.script;
  EXPECT_THAT(std::string(Refusal(ClassGraph(100, 20), other).message()),
              HasSubstr("\ngive the state_dict of the module in " +
                        other.model.script));
}

TEST(ScriptTrainerTest, RefusesRanksWithDifferentScripts) {
  const auto source = Serve(ClassGraph(100, 20), "script_ranks");
  const std::vector<TrainOptions> runs = {
      ScriptRun(SageScript(6, 8, 4, 1), "rank_0"),
      ScriptRun(SageScript(6, 8, 4, 2), "rank_1")};
  EXPECT_THAT(std::string(CreateTrainers({source, source}, runs)[1].message()),
              HasSubstr("of rank 1 differs from rank 0's"));
}

}  // namespace
}  // namespace millrace::testing
