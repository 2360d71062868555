// SPDX-License-Identifier: Apache-2.0
// Training on edges: what must and must not be learned; partitions and ranks
// must not change the result.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

class Random {
 public:
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  Array Signs(int64_t rows, int64_t columns) {
    Array array = Array::Allocate(DType::kFloat32, {rows, columns});
    for (float& cell : array.MutableAs<float>()) {
      cell = Below(2) == 0 ? -0.25f : 0.25f;
    }
    return array;
  }

 private:
  std::mt19937 random_{5};
};

double LastValid(const std::vector<MetricsRecord>& history) {
  EXPECT_FALSE(history.empty());
  return history.empty() ? 0 : history.back().metrics.valid.value_or(0);
}

// Uniformly random edges, in both directions if `undirected`, and rows of
// random signs, which identify nodes and carry no other information, so only
// the edge itself shows whether two nodes are connected. Two thirds of the
// edges are in the train split, one third in valid; all are in the graph.
struct Noise {
  TestGraph graph;
  std::vector<LinkSplit> splits;
};
Noise RandomGraph(bool undirected) {
  constexpr int64_t kNodes = 4000, kEdges = 6000;
  Random random;
  Edges edges, train, valid;
  for (int64_t e = 0; e < kEdges; ++e) {
    const auto edge = std::pair(random.Below(kNodes), random.Below(kNodes));
    (e % 3 == 2 ? valid : train).push_back(edge);
    edges.push_back(edge);
    if (undirected) edges.emplace_back(edge.second, edge.first);
  }
  Noise noise;
  noise.graph.types = {{.count = kNodes, .feature = random.Signs(kNodes, 48)}};
  noise.graph.relations = {{.edges = edges}};
  noise.splits = {{"", "train", train}, {"", "valid", valid}};
  return noise;
}

// ROC-AUC on valid after training, with the same exclusion for both.
double AucOfNoise(const Noise& noise, ExcludeSeedEdges exclude,
                  const std::string& name) {
  TrainOptions options = LinkRun();
  options.job.exclude = exclude;
  options.job.fanouts = {-1};
  options.model.layers = 1;
  options.model.hidden = 48;
  options.evaluation.kind = InferenceKind::kSampled;
  options.eval_every = 0;
  options.epochs = 12;
  return LastValid(
      TrainRanks(1, ServeLinks(noise.graph, noise.splits, name, 1), options));
}

// With 2,000 edges and 2,000 pairs, chance deviates by more than 0.055 once in
// 10^9 runs.
TEST(LinkLeakage, SeedEdgesAreNotSeen) {
  const Noise directed = RandomGraph(/*undirected=*/false);
  EXPECT_NEAR(AucOfNoise(directed, ExcludeSeedEdges::kSelf, "leak_self"), 0.5,
              0.055);
  EXPECT_GT(AucOfNoise(directed, ExcludeSeedEdges::kNone, "leak_none"), 0.7);
}

TEST(LinkLeakage, ReverseEdgesAreNotSeen) {
  const Noise undirected = RandomGraph(/*undirected=*/true);
  EXPECT_NEAR(AucOfNoise(undirected, ExcludeSeedEdges::kReverse, "leak_both"),
              0.5, 0.055);
  EXPECT_GT(AucOfNoise(undirected, ExcludeSeedEdges::kSelf, "leak_back"), 0.7);
}

// Groups of nodes with edges only within each group; the last tenth of the
// edges is not in the graph.
struct Groups {
  TestGraph graph;
  std::vector<LinkSplit> splits;
};
Groups GroupGraph(bool features) {
  constexpr int64_t kNodes = 200, kGroups = 5, kEdges = 1600;
  Random random;
  Edges train, valid;
  for (int64_t e = 0; e < kEdges; ++e) {
    const int64_t u = random.Below(kNodes);
    const int64_t v = random.Below(kNodes / kGroups) * kGroups + u % kGroups;
    (e < kEdges * 9 / 10 ? train : valid).emplace_back(u, v);
  }
  Groups groups;
  groups.graph.types = {{.count = kNodes}};
  if (features) groups.graph.types[0].feature = random.Signs(kNodes, 12);
  groups.graph.relations = {{.edges = train}};
  groups.splits = {{"", "train", train}, {"", "valid", valid}};
  return groups;
}

TEST(LinkTrainer, LearnsGroupsByAnyLoss) {
  const auto source = [] {
    const Groups groups = GroupGraph(false);
    return ServeLinks(groups.graph, groups.splits, "link_learns", 1);
  }();
  const std::vector<std::pair<NegativeMode, LinkLoss>> kinds = {
      {NegativeMode::kBinary, LinkLoss::kBce},
      {NegativeMode::kTriplet, LinkLoss::kBce},
      {NegativeMode::kTriplet, LinkLoss::kSoftmax},
      {NegativeMode::kShared, LinkLoss::kSoftmax},
      {NegativeMode::kInBatch, LinkLoss::kSoftmax}};
  for (const auto& [mode, loss] : kinds) {
    TrainOptions options = LinkRun();
    options.job.negatives = {mode, mode == NegativeMode::kShared ? 32.0 : 2.0};
    options.task.negatives = mode;
    options.task.loss = loss;
    options.model.kind = ModelKind::kEmbedding;
    options.model.layers = 0;
    options.job.fanouts = {0};
    options.optimizer.lr = 0.05;
    options.epochs = 12;
    EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.85)
        << static_cast<int>(mode) << " " << static_cast<int>(loss);
  }
}

TEST(LinkTrainer, RanksAmongAllAndAmongDrawnOnes) {
  const Groups groups = GroupGraph(false);
  const auto source = ServeLinks(groups.graph, groups.splits, "link_ranks", 1);
  TrainOptions options = LinkRun();
  options.job.negatives = {NegativeMode::kShared, 64};
  options.task.negatives = NegativeMode::kShared;
  options.task.loss = LinkLoss::kSoftmax;
  options.epochs = 8;
  options.optimizer.lr = 0.03;
  options.task.metric = MetricKind::kMrr;
  // 40 of 200 nodes are right answers, about 7 of them known, so chance gives
  // 0.03.
  EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.08);
  options.task.metric = MetricKind::kHits;
  options.task.hits = 40;
  EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.6);
  options.evaluation.negatives = EvalNegatives::kDrawn;
  options.evaluation.drawn = {NegativeMode::kTriplet, 9};
  options.task.hits = 5;
  EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.8);
}

TEST(LinkTrainer, PartitionsDoNotChangeLossesNorMetrics) {
  const Groups groups = GroupGraph(true);
  for (const ModelKind kind :
       {ModelKind::kSage, ModelKind::kGat, ModelKind::kGcn}) {
    TrainOptions options = LinkRun();
    options.model.kind = kind;
    options.log_every = 1;
    std::vector<std::vector<MetricsRecord>> runs;
    for (const int parts : {1, 3}) {
      runs.push_back(TrainRanks(
          2,
          ServeLinks(groups.graph, groups.splits,
                     StrCat("link_parts_", InfoOf(kind).name, parts), parts),
          options));
    }
    EXPECT_EQ(Losses(runs[0]), Losses(runs[1])) << InfoOf(kind).name;
    EXPECT_EQ(LastValid(runs[0]), LastValid(runs[1])) << InfoOf(kind).name;
  }
}

// With all neighbours, a batch sees what exact inference sees.
TEST(LinkTrainer, SampledAndExactEvaluationAgree) {
  const Groups groups = GroupGraph(true);
  const auto source = ServeLinks(groups.graph, groups.splits, "link_exact", 2);
  TrainOptions options = LinkRun();
  options.job.fanouts = {-1, -1};
  options.job.exclude = ExcludeSeedEdges::kNone;
  std::vector<double> values;
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    options.evaluation.kind = kind;
    for (const int world : {1, 2}) {
      options.epochs = 0;
      values.push_back(LastValid(TrainRanks(world, source, options)));
    }
  }
  for (const double value : values) EXPECT_NEAR(value, values[0], 1e-6);
}

// Users and items in groups, as a bipartite graph with reverse edges. Both
// types are computed, one of them from embeddings.
TEST(LinkTrainer, LearnsEdgesBetweenTwoTypes) {
  constexpr int64_t kUsers = 150, kItems = 100, kGroups = 5;
  Random random;
  Edges likes, liked, valid;
  for (int64_t e = 0; e < 1200; ++e) {
    const int64_t user = random.Below(kUsers);
    const int64_t item =
        random.Below(kItems / kGroups) * kGroups + user % kGroups;
    if (e % 10 == 9) {
      valid.emplace_back(user, item);
      continue;
    }
    likes.emplace_back(user, item);
    liked.emplace_back(item, user);
  }
  TestGraph graph;
  graph.types = {
      {.name = "user", .count = kUsers, .feature = random.Signs(kUsers, 6)},
      {.name = "item", .count = kItems}};
  graph.relations = {
      {.src = "user", .name = "likes", .dst = "item", .edges = likes},
      {.src = "item", .name = "rev_likes", .dst = "user", .edges = liked}};
  const std::vector<LinkSplit> splits = {{"user__likes__item", "train", likes},
                                         {"user__likes__item", "valid", valid}};
  for (const ModelKind kind : {ModelKind::kSage, ModelKind::kRgcn}) {
    TrainOptions options = LinkRun();
    options.model.kind = kind;
    options.job.seed_type = "user__likes__item";
    options.optimizer.lr = 0.02;
    options.epochs = 15;
    std::vector<double> valids;
    for (const int parts : {1, 3}) {
      valids.push_back(LastValid(TrainRanks(
          1,
          ServeLinks(graph, splits,
                     StrCat("two_types", InfoOf(kind).name, parts), parts),
          options)));
    }
    EXPECT_GT(valids[0], 0.75) << InfoOf(kind).name;
    EXPECT_EQ(valids[0], valids[1]) << InfoOf(kind).name;
  }
}

TEST(LinkTrainer, ContinuesFromACheckpoint) {
  const Groups groups = GroupGraph(true);
  const auto source = ServeLinks(groups.graph, groups.splits, "link_resume", 1);
  TrainOptions options = LinkRun();
  options.model.decoder = DecoderKind::kDistMult;
  options.epochs = 3;
  const auto whole = TrainRanks(1, source, options);
  options.checkpoint = (TestDirectory("link_resume_at") / "at").string();
  options.resume = true;
  options.epochs = 1;
  TrainRanks(1, source, options);
  options.epochs = 3;
  const auto rest = TrainRanks(2, source, options);
  ASSERT_EQ(whole.size(), 3u);
  ASSERT_EQ(rest.size(), 2u);
  // Two ranks take two batches per step, so only the first value is equal.
  options.checkpoint = (TestDirectory("link_resume_one") / "at").string();
  options.epochs = 2;
  TrainRanks(1, source, options);
  options.epochs = 3;
  const auto last = TrainRanks(1, source, options);
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].loss, whole[2].loss);
  EXPECT_EQ(last[0].metrics.valid, whole[2].metrics.valid);
}

// Without features, the model learns a row per node.
TEST(LinkTrainer, NeedsNoFeatures) {
  const Groups groups = GroupGraph(false);
  const auto source = ServeLinks(groups.graph, groups.splits, "link_bare", 1);
  for (const ModelKind kind :
       {ModelKind::kSage, ModelKind::kGcn, ModelKind::kGat, ModelKind::kGin}) {
    for (const auto inference :
         {InferenceKind::kFull, InferenceKind::kSampled}) {
      TrainOptions options = LinkRun();
      options.model.kind = kind;
      options.evaluation.kind = inference;
      options.epochs = 6;
      options.optimizer.lr = 0.02;
      EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.6)
          << InfoOf(kind).name;
    }
  }
}

// Pairs within a group and across groups; only their labels tell them apart.
TEST(LinkTrainer, LearnsLabelsOfPairs) {
  Groups groups = GroupGraph(true);
  Random random;
  for (const char* name : {"yes_or_no", "told"}) {
    LinkSplit split{"", name, {}, {}};
    for (int i = 0; i < 1500; ++i) {
      const int64_t u = random.Below(200), v = random.Below(200);
      split.edges.emplace_back(u, v);
      split.labels.push_back(i % 50 == 0      ? -1.0f
                             : u % 5 == v % 5 ? 1.0f
                                              : 0.0f);
    }
    groups.splits.push_back(split);
  }
  const auto source = ServeLinks(groups.graph, groups.splits, "link_label", 1);
  TrainOptions options = LinkRun();
  options.job.split = "yes_or_no";
  options.valid_split = "told";
  options.job.negatives = {};
  options.task.negatives = NegativeMode::kNone;
  options.optimizer.lr = 0.03;
  options.epochs = 8;
  EXPECT_GT(LastValid(TrainRanks(1, source, options)), 0.75);
}

TEST(LinkTrainer, ExplainsIncompatibleOptions) {
  Groups groups = GroupGraph(true);
  groups.splits.push_back({"", "labelled", {{1, 2}, {3, 4}}, {1, 0}});
  const auto source = ServeLinks(groups.graph, groups.splits, "link_refuse", 1);
  const auto refuses = [&](const char* what, auto change) {
    TrainOptions options = LinkRun();
    change(options);
    const absl::Status status = Refusal(source, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
    EXPECT_TRUE(GetFieldError(status).has_value()) << status;
  };
  refuses("neither negatives", [](TrainOptions& options) {
    options.job.negatives = {};
    options.task.negatives = NegativeMode::kNone;
  });
  refuses("loss softmax", [](TrainOptions& options) {
    options.task.loss = LinkLoss::kSoftmax;
  });
  refuses("eval_negatives", [](TrainOptions& options) {
    options.evaluation.negatives = EvalNegatives::kAll;
  });
  refuses("metric mrr", [](TrainOptions& options) {
    options.task.metric = MetricKind::kMrr;
    options.evaluation.negatives = EvalNegatives::kDrawn;
    options.evaluation.drawn = {NegativeMode::kBinary, 1};
  });
  refuses("split valid", [](TrainOptions& options) {
    options.evaluation.negatives = EvalNegatives::kGiven;
  });
  refuses("negatives: it adds",
          [](TrainOptions& options) { options.job.split = "labelled"; });
  refuses("inference full: sees",
          [](TrainOptions& options) { options.valid_split = "train"; });
  refuses("in-batch", [](TrainOptions& options) {
    options.evaluation.negatives = EvalNegatives::kDrawn;
    options.evaluation.drawn = {NegativeMode::kInBatch, 1};
  });
  refuses("neither negatives", [](TrainOptions& options) {
    options.job.negatives = {};
    options.task.negatives = NegativeMode::kNone;
    options.job.split = "labelled";
    options.seeds.emplace().ids = {1, 2};
    options.seeds->dst = {3, 4};
  });
  refuses("seed_kind edge needs task link",
          [](TrainOptions& options) { options.task.kind = TaskKind::kSingle; });
  refuses("layers", [](TrainOptions& options) {
    options.model.kind = ModelKind::kEmbedding;
  });
}

}  // namespace
}  // namespace millrace::testing
