// SPDX-License-Identifier: Apache-2.0
// Metrics of edges by a model whose scores are known.
#include "client/train/link/link_evaluator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "tests/support/limited_accelerator.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::StartsWith;

constexpr int64_t kEnds = 8;

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

EdgeSplitColumns SplitOf(const std::string& name, const Pairs& pairs) {
  std::vector<int64_t> src, dst;
  for (const auto& [from, to] : pairs) {
    src.push_back(from);
    dst.push_back(to);
  }
  EdgeSplitColumns split;
  split.name = name;
  split.src = Array::Adopt(std::move(src));
  split.dst = Array::Adopt(std::move(dst));
  return split;
}

// Node v has the row (v - 3, 1), so that an edge from u to v has the score
// (u - 3) * (v - 3) + 1.
class LinkEvaluatorTest : public ::testing::Test {
 protected:
  LinkEvaluatorTest() {
    graph_.types = {{.count = kEnds}};
    graph_.relations = {{.edges = {{0, 1}, {1, 2}, {6, 7}, {5, 6}}}};
    graph_.edge_splits = {SplitOf("valid", valid_)};
    job_.seed_kind = SeedKind::kEdge;
    job_.fanouts = {0};
    options_.task = Task::Parse("link", "mrr").value();
    options_.task.negatives = NegativeMode::kBinary;
    splits_.valid = "valid";
  }

  static double Score(int64_t u, int64_t v) {
    return static_cast<double>((u - 3) * (v - 3) + 1);
  }
  // The rank of an edge among candidates for one of its ends.
  template <typename Rival>
  static double RankOf(double own, const std::vector<int64_t>& rivals,
                       Rival score_of) {
    double rank = 1;
    for (const int64_t rival : rivals) {
      if (score_of(rival) > own) rank += 1;
      if (score_of(rival) == own) rank += 0.5;
    }
    return rank;
  }

  void Serve() { source_ = testing::Serve(graph_, "link_evaluator"); }

  std::unique_ptr<Model> MakeModel() const {
    ModelConfig config;
    config.kind = ModelKind::kEmbedding;
    config.layers = 0;
    config.hidden = config.out = 2;
    config.decoder = DecoderKind::kDot;
    auto model =
        Model::Create(config, GraphShape::OfEdges(source_->manifest().schema, 0,
                                                  Direction::kIn))
            .value();
    for (const NamedTensor& named : model->parameters().parameters()) {
      const at::Tensor rows = named.tensor.detach();
      EXPECT_EQ(rows.sizes(), at::IntArrayRef({kEnds, 2}));
      rows.select(1, 0).copy_(at::arange(kEnds, at::kFloat).sub(3));
      rows.select(1, 1).fill_(1);
    }
    return model;
  }

  // The metrics of a group of `world`.
  SplitMetrics Run(int world = 1) {
    if (source_ == nullptr) Serve();
    SplitMetrics metrics;
    RunRanks(world, [&](Collectives& collectives) {
      const auto model = MakeModel();
      const auto evaluator = LinkEvaluator::Create(
          source_, job_, *model, collectives, splits_, options_);
      ASSERT_TRUE(evaluator.ok()) << evaluator.status();
      const auto run = (*evaluator)->Run();
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->train, std::nullopt);
      if (collectives.rank() == world - 1) metrics = *run;
    });
    return metrics;
  }
  // Expects that the evaluation is refused in these words.
  void ExpectRefusal(const std::string& message, const std::string& reason) {
    if (source_ == nullptr) Serve();
    RunRanks(1, [&](Collectives& alone) {
      const auto model = MakeModel();
      const absl::Status status =
          LinkEvaluator::Create(source_, job_, *model, alone, splits_, options_)
              .status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_EQ(status.message(), message);
      EXPECT_EQ(ReasonOf(status), reason);
    });
  }

  const Pairs valid_ = {{0, 2}, {7, 4}, {5, 5}, {4, 0}, {6, 3}};
  TestGraph graph_;
  JobSpec job_;
  EvaluationOptions options_;
  LinkEvaluator::Splits splits_;
  std::shared_ptr<BatchSource> source_;
};

TEST_F(LinkEvaluatorTest, RanksBothEndsAmongAllNodes) {
  std::vector<double> reciprocals;
  int64_t hits = 0;
  for (const auto& [u, v] : valid_) {
    std::vector<int64_t> ends;
    for (int64_t w = 0; w < kEnds; ++w) ends.push_back(w);
    std::vector<int64_t> tails = ends, heads = ends;
    std::erase(tails, v);
    std::erase(heads, u);
    const double own = Score(u, v);
    for (const double rank :
         {RankOf(own, tails, [u = u](int64_t w) { return Score(u, w); }),
          RankOf(own, heads, [v = v](int64_t w) { return Score(w, v); })}) {
      reciprocals.push_back(1 / rank);
      hits += rank <= 3;
    }
  }
  double sum = 0;
  for (const double reciprocal : reciprocals) sum += reciprocal;
  for (const int world : {1, 2}) {
    for (const bool all_ranks : {true, false}) {
      options_.inference.all_ranks = all_ranks;
      options_.task.metric = MetricKind::kMrr;
      EXPECT_NEAR(Run(world).valid.value(), sum / 10, 1e-9);
      options_.task.metric = MetricKind::kHits;
      options_.task.hits = 3;
      EXPECT_NEAR(Run(world).valid.value(), static_cast<double>(hits) / 10,
                  1e-9);
    }
  }
}

TEST_F(LinkEvaluatorTest, AsksTheAcceleratorForTheMemoryOfEnds) {
  Serve();
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    options_.kind = kind;
    RunRanks(1, [&](Collectives& alone) {
      const auto model = MakeModel();
      LimitedAccelerator accelerator;
      const auto run = [&] {
        return LinkEvaluator::Create(source_, job_, *model, alone, splits_,
                                     options_, accelerator)
            .value()
            ->Run()
            .status();
      };
      EXPECT_TRUE(run().ok());
      // Both ends of 5 edges, 2 columns wide.
      EXPECT_GE(accelerator.asked, 10 * 2 * sizeof(float));
      accelerator.limit = accelerator.asked / 2 - 1;
      const absl::Status status = run();
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(ReasonOf(status), "evaluation_batch_too_large");
    });
  }
}

TEST_F(LinkEvaluatorTest, PredictionsAreTheRowsOfAllNodes) {
  Serve();
  options_.kind = InferenceKind::kFull;
  RunRanks(2, [&](Collectives& collectives) {
    const auto model = MakeModel();
    const auto evaluator = LinkEvaluator::Create(
        source_, job_, *model, collectives, splits_, options_);
    ASSERT_TRUE(evaluator.ok()) << evaluator.status();
    const auto rows = (*evaluator)->Predict(false);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(rows->equal(model->parameters().parameters()[0].tensor));
  });
}

TEST_F(LinkEvaluatorTest, KnownEdgesAreNoRivals) {
  const double all = Run().valid.value();
  // 0 -> 0, 0 -> 1 and 7 -> 7 score more than 0 -> 2 and 7 -> 4.
  const LinkTable known{at::tensor({0, 0, 7}, at::kLong),
                        at::tensor({0, 1, 7}, at::kLong),
                        at::zeros({3}, at::kLong)};
  splits_.known = {&known};
  EXPECT_GT(Run().valid.value(), all + 0.05);
}

TEST_F(LinkEvaluatorTest, RanksAmongTheNegativesOfASplit) {
  graph_.edge_splits[0].negative =
      Array::Adopt(std::vector<int64_t>{1, 7, 7, 4, 6, 5, 1, 2, 0, 3}, {5, 2});
  std::vector<double> ranks;
  const std::vector<std::vector<int64_t>> negatives = {
      {1, 7}, {7}, {6}, {1, 2}, {0}};  // without the edges' own ends
  double sum = 0;
  for (size_t i = 0; i < valid_.size(); ++i) {
    const auto [u, v] = valid_[i];
    sum += 1 / RankOf(Score(u, v), negatives[i],
                      [u = u](int64_t w) { return Score(u, w); });
  }
  for (const auto kind : {InferenceKind::kFull, InferenceKind::kSampled}) {
    options_.kind = kind;
    EXPECT_NEAR(Run().valid.value(), sum / 5, 1e-9);
    // They are given, so this is the default.
    options_.negatives = EvalNegatives::kGiven;
    EXPECT_NEAR(Run(2).valid.value(), sum / 5, 1e-9);
    options_.negatives = EvalNegatives::kDefault;
  }
}

// An own end among the negatives does not count.
TEST_F(LinkEvaluatorTest, AccuracyIsOverEdgesAndTheirNegatives) {
  graph_.edge_splits[0].negative =
      Array::Adopt(std::vector<int64_t>{1, 7, 7, 4, 6, 5, 1, 2, 0, 3}, {5, 2});
  options_.task.metric = MetricKind::kAccuracy;
  int64_t right = 0, all = 0;
  const std::vector<std::vector<int64_t>> negatives = {
      {1, 7}, {7}, {6}, {1, 2}, {0}};
  for (size_t i = 0; i < valid_.size(); ++i) {
    right += Score(valid_[i].first, valid_[i].second) > 0;
    ++all;
    for (const int64_t w : negatives[i]) {
      right += Score(valid_[i].first, w) <= 0;
      ++all;
    }
  }
  EXPECT_NEAR(Run().valid.value(),
              static_cast<double>(right) / static_cast<double>(all), 1e-9);
}

TEST_F(LinkEvaluatorTest, LabelsTakeThePlaceOfNegativesAsInTraining) {
  graph_.edge_splits[0].label =
      Array::Adopt(std::vector<float>{1, 0, -1, 1, 1});
  options_.task.metric = MetricKind::kAccuracy;
  options_.task.negatives = NegativeMode::kNone;
  // 0 -> 2 and 6 -> 3 are predicted (4 and 1), 7 -> 4 too (5), which is wrong;
  // 4 -> 0 is not (-2), which is wrong as well.
  EXPECT_NEAR(Run().valid.value(), 2.0 / 4, 1e-9);
  options_.task.metric = MetricKind::kRocAuc;
  // The scores of 1 are 4, -2 and 1, all below that of the 0.
  EXPECT_NEAR(Run().valid.value(), 0, 1e-9);
  // A model that learns from negatives is evaluated with some.
  options_.task.negatives = NegativeMode::kBinary;
  EXPECT_NE(Run().valid.value(), 0);
  options_.negatives = EvalNegatives::kGiven;
  EXPECT_NEAR(Run().valid.value(), 0, 1e-9);
}

// Of k drawn destinations, one that is the edge's own does not count; the rank
// is from 1 to k + 1.
TEST_F(LinkEvaluatorTest, RanksAmongAHundredThatAreDrawn) {
  options_.kind = InferenceKind::kSampled;
  options_.task.metric = MetricKind::kHits;
  options_.task.hits = 101;
  EXPECT_EQ(Run().valid.value(), 1);
  // 4 -> 0 has the least score of all from 4, and nearly 100 rivals.
  options_.task.hits = 80;
  graph_.edge_splits = {SplitOf("valid", {{4, 0}})};
  Serve();
  EXPECT_EQ(Run().valid.value(), 0);
  options_.negatives = EvalNegatives::kDrawn;
  options_.drawn = {NegativeMode::kTriplet, 7};
  options_.task.hits = 8;
  EXPECT_EQ(Run().valid.value(), 1);
}

TEST_F(LinkEvaluatorTest, ASplitThatIsNotNamedHasNoMetric) {
  splits_.test = splits_.valid;
  splits_.valid.reset();
  const SplitMetrics metrics = Run();
  EXPECT_EQ(metrics.valid, std::nullopt);
  EXPECT_TRUE(metrics.test.has_value());
}

TEST_F(LinkEvaluatorTest, NamesNegativesThatDoNotSuit) {
  options_.negatives = EvalNegatives::kAll;
  options_.task.metric = MetricKind::kRocAuc;
  ExpectRefusal(
      "eval_negatives all: ranks every node, which works only with full "
      "inference and the metrics mrr and hits@K, not with rocauc",
      "other_eval_negatives");
  options_.task.metric = MetricKind::kMrr;
  options_.kind = InferenceKind::kSampled;
  ExpectRefusal(
      "eval_negatives all: ranks every node, which works only with full "
      "inference and the metrics mrr and hits@K, not with sampled inference",
      "other_eval_negatives");
  options_.kind = InferenceKind::kFull;
  options_.negatives = EvalNegatives::kDrawn;
  options_.drawn = {NegativeMode::kInBatch, 1};
  ExpectRefusal(
      "eval_negatives in-batch: would depend on the batch size of evaluation",
      "other_eval_negatives");
  options_.drawn = {NegativeMode::kBinary, 1};
  ExpectRefusal(
      "metric mrr: ranks an edge among its own negatives, but binary draws "
      "independent pairs",
      "other_eval_negatives");
  options_.negatives = EvalNegatives::kGiven;
  ExpectRefusal(
      "eval_negatives given: split valid has neither negatives nor, for "
      "rocauc and accuracy, labels",
      "no_given_negatives");
  // Labels rank nothing.
  graph_.edge_splits[0].label = Array::Adopt(std::vector<float>{1, 0, 1, 1, 1});
  Serve();
  ExpectRefusal(
      "eval_negatives given: split valid has neither negatives nor, for "
      "rocauc and accuracy, labels",
      "no_given_negatives");
}

// A model with layers sees the edges of the graph.
class SeenEdgesTest : public LinkEvaluatorTest {
 protected:
  absl::Status Create(const Pairs& pairs, InferenceKind kind, int layers) {
    graph_.types[0].feature = RampFeature(kEnds, 3);
    graph_.edge_splits = {SplitOf("valid", pairs)};
    const auto source = testing::Serve(graph_, "seen_edges");
    ModelConfig config;
    config.kind = layers > 0 ? ModelKind::kSage : ModelKind::kEmbedding;
    config.in = 3;
    config.hidden = config.out = 2;
    config.layers = layers;
    config.decoder = DecoderKind::kDot;
    const auto model =
        Model::Create(config, GraphShape::OfEdges(source->manifest().schema, 0,
                                                  job_.direction))
            .value();
    options_.kind = kind;
    absl::Status status;
    RunRanks(1, [&](Collectives& alone) {
      status =
          LinkEvaluator::Create(source, job_, *model, alone, splits_, options_)
              .status();
    });
    return status;
  }
};

TEST_F(SeenEdgesTest, HalfOfASplitMayBeEdgesOfTheGraph) {
  const Pairs half = {{0, 1}, {1, 2}, {2, 1}, {7, 6}};
  const Pairs most = {{0, 1}, {1, 2}, {2, 1}, {6, 7}};
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    job_.direction = direction;
    EXPECT_TRUE(Create(half, InferenceKind::kFull, 1).ok());
    const absl::Status status = Create(most, InferenceKind::kFull, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              "inference full: sees the edges of split valid that are in the "
              "graph: 3 of its first 4");
    EXPECT_EQ(ReasonOf(status), "evaluated_edges_in_graph");
    EXPECT_TRUE(Create(most, InferenceKind::kSampled, 1).ok());
    EXPECT_TRUE(Create(most, InferenceKind::kFull, 0).ok());
  }
}

TEST_F(LinkEvaluatorTest, TablesHaveTheEdgesOfASplitInOrder) {
  graph_.edge_splits[0].edge_type =
      Array::Adopt(std::vector<int32_t>{4, 0, 1, 2, 0});
  Serve();
  auto table = ReadLinkTable(source_, job_, "valid");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->src.equal(at::tensor({0, 7, 5, 4, 6}, at::kLong)));
  EXPECT_TRUE(table->dst.equal(at::tensor({2, 4, 5, 0, 3}, at::kLong)));
  EXPECT_TRUE(table->edge_type.equal(at::tensor({4, 0, 1, 2, 0}, at::kLong)));
  EXPECT_EQ(table->edge_types(), 5);
  ExplicitSeeds seeds;
  seeds.ids = {3, 1};
  seeds.dst = {1, 2};
  table = ReadLinkTable(source_, job_, "valid", seeds);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->src.equal(at::tensor({3, 1}, at::kLong)));
  EXPECT_TRUE(table->dst.equal(at::tensor({1, 2}, at::kLong)));
  EXPECT_TRUE(table->edge_type.equal(at::zeros({2}, at::kLong)));
}

TEST_F(LinkEvaluatorTest, RefusesANegativeTypeOfAnEdge) {
  graph_.edge_splits[0].edge_type =
      Array::Adopt(std::vector<int32_t>{4, 0, -2, 2, 0});
  Serve();
  const absl::Status status = ReadLinkTable(source_, job_, "valid").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "split valid has the edge type -2\nedge types must be at least 0");
}

TEST(BareLinkJobTest, HasTheSeedsAlone) {
  JobSpec job;
  job.seed = 7;
  job.seed_type = "a__b__c";
  job.direction = Direction::kOut;
  job.fanouts = {5, 5};
  job.negatives = {NegativeMode::kTriplet, 3};
  job.batch_size = 3;
  JobSpec want;
  want.seed = 7;
  want.seed_kind = SeedKind::kEdge;
  want.seed_type = "a__b__c";
  want.direction = Direction::kOut;
  want.split = "fold";
  want.fanouts = {0};
  want.shuffle = false;
  EXPECT_EQ(BareLinkJob(job, "fold"), want);
}

// All edges have the type 0 then.
TEST(LinkRanksTest, EdgesWithoutTypesAreOfTypeZero) {
  const at::Tensor rows = at::tensor({1., 2., 3.}, at::kFloat).view({3, 1});
  const at::Tensor from = at::tensor({0}, at::kLong);
  const auto rank = [&](int64_t type) {
    const LinkTable table{from, at::tensor({2}, at::kLong),
                          at::full({1}, type, at::kLong)};
    return RanksAmongAll({LinkSide::kDestination, rows.narrow(0, 0, 1),
                          at::Tensor(), from, at::tensor({1}, at::kLong)},
                         rows, KnownLinks({&table}))
        .item()
        .toDouble();
  };
  EXPECT_EQ(rank(0), 1);
  EXPECT_EQ(rank(1), 2);
}

}  // namespace
}  // namespace millrace::testing
