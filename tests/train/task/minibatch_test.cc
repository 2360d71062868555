// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/minibatch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/loader.h"
#include "common/base/field_error.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

ModelConfig Config(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.in = 6;
  config.hidden = 8;
  config.out = 4;
  return config;
}

// A batch of these seeds.
Batch BatchOf(const std::shared_ptr<BatchSource>& source, JobSpec job,
              const std::vector<int64_t>& seeds, const Columns& columns = {}) {
  job.split.clear();
  LoaderOptions options;
  options.columns = columns;
  options.seeds.emplace().ids = seeds;
  const auto loader = Loader::Create(source, job, std::move(options));
  EXPECT_TRUE(loader.ok()) << loader.status();
  auto step = (*loader)->Next();
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move((*step)->batch);
}

JobSpec TwoHops() {
  JobSpec job;
  job.fanouts = {3, 2};
  job.shuffle = false;
  return job;
}

class MinibatchTest : public ::testing::Test {
 protected:
  // Node v of this graph has the class v mod 4.
  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(60, 20), "minibatch");
  const std::unique_ptr<Model> sage_ =
      Model::Create(Config(ModelKind::kSage)).value();
};

TEST_F(MinibatchTest, DifferentSeedsAreTheFirstRows) {
  const auto minibatch =
      MakeMinibatch(BatchOf(source_, TwoHops(), {9, 4, 7}), *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_FALSE(minibatch->seed_rows.defined());
  EXPECT_EQ(minibatch->seeds, 3);
  EXPECT_EQ(minibatch->labelled, 3);
  EXPECT_TRUE(minibatch->labels.equal(at::tensor({1, 0, 3}, at::kLong)));
  const at::Tensor rows = at::arange(3);
  EXPECT_TRUE(minibatch->OfSeeds(rows).is_same(rows));
  EXPECT_FALSE(minibatch->links.has_value());
}

TEST_F(MinibatchTest, ASeedThatOccursTwiceHasOneRow) {
  const auto minibatch =
      MakeMinibatch(BatchOf(source_, TwoHops(), {9, 6, 9, 7}), *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_EQ(minibatch->seeds, 4);
  EXPECT_EQ(minibatch->labelled, 4);
  EXPECT_EQ(minibatch->graph.nodes[0].hop_offsets[1], 3u);
  EXPECT_TRUE(minibatch->labels.equal(at::tensor({1, 2, 1, 3}, at::kLong)));
  const at::Tensor rows = at::tensor({10, 11, 12}, at::kLong);
  EXPECT_TRUE(
      minibatch->OfSeeds(rows).equal(at::tensor({10, 11, 10, 12}, at::kLong)));
}

TEST_F(MinibatchTest, CountsTheLabelsThatAreThere) {
  TestGraph graph = ClassGraph(60, 20);
  std::vector<int64_t> label(60, 1);
  label[4] = -1;
  graph.types[0].label = Array::Adopt(std::move(label));
  const auto source = Serve(graph, "minibatch_unlabelled");
  const auto minibatch =
      MakeMinibatch(BatchOf(source, TwoHops(), {9, 4, 4}), *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_EQ(minibatch->seeds, 3);
  EXPECT_EQ(minibatch->labelled, 1);
  Columns columns;
  columns.labels = LabelRows::kNone;
  const auto bare =
      MakeMinibatch(BatchOf(source_, TwoHops(), {9, 4}, columns), *sage_);
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_FALSE(bare->labels.defined());
  EXPECT_EQ(bare->labelled, 0);
}

TEST_F(MinibatchTest, ReadsTheLabelsOfTheTask) {
  const auto minibatch =
      MakeMinibatch(BatchOf(source_, TwoHops(), {9, 4}), *sage_,
                    Task::Parse("regression", "").value());
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_TRUE(minibatch->labels.equal(at::tensor({1., 0.}).view({2, 1})));
  // 9 has the class 1 and 7 the class 3, which is no answer.
  EXPECT_FALSE(MakeMinibatch(BatchOf(source_, TwoHops(), {9, 7}), *sage_,
                             Task::Parse("binary", "").value())
                   .ok());
}

TEST_F(MinibatchTest, HopsAreThoseOfTheSampler) {
  const Batch batch = BatchOf(source_, TwoHops(), {9, 4});
  const auto minibatch = MakeMinibatch(batch, *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_EQ(minibatch->graph.nodes[0].hop_offsets, batch.nodes[0].hop_offsets);
  EXPECT_EQ(batch.nodes[0].hop_offsets.size(), 4u);
}

// Nodes that are not seeds count as one hop away.
TEST_F(MinibatchTest, EveryNodeOfAnInducedSubgraphIsComputed) {
  JobSpec job = TwoHops();
  job.method = SampleMethod::kInduced;
  const Batch batch = BatchOf(source_, job, {9, 4});
  const auto minibatch = MakeMinibatch(batch, *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_THAT(minibatch->graph.nodes[0].hop_offsets,
              ElementsAre(0, 2, batch.nodes[0].count()));
  EXPECT_GT(batch.nodes[0].count(), batch.nodes[0].hop_offsets[2]);
}

// Three graphs of 2 nodes each.
TEST_F(MinibatchTest, EveryNodeOfAGraphCounts) {
  TestGraph graph = ClassGraph(60, 20);
  graph.types[0].label = {};
  std::vector<std::pair<int64_t, int64_t>> members;
  for (int64_t v = 0; v < 6; ++v) members.emplace_back(v, v / 2);
  graph.types.push_back({.name = "graph",
                         .count = 3,
                         .label = Array::Adopt(std::vector<int64_t>{1, 0, 1})});
  graph.relations = {
      {.edges = {{0, 1}, {2, 3}, {5, 4}}},
      {.name = "in", .dst = "graph", .edges = std::move(members)}};
  graph.splits.clear();
  const auto source = Serve(graph, "minibatch_graphs");
  JobSpec job;
  job.seed_kind = SeedKind::kGraph;
  job.shuffle = false;
  const Batch batch = BatchOf(source, job, {2, 0});
  const auto model =
      Model::Create(Config(ModelKind::kGin),
                    GraphShape::OfGraphs(source->manifest().schema, 1).value())
          .value();
  const auto minibatch = MakeMinibatch(batch, *model);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_THAT(minibatch->graph.nodes[0].hop_offsets, ElementsAre(0, 4, 4));
  EXPECT_TRUE(minibatch->labels.equal(at::tensor({1, 1}, at::kLong)));
  EXPECT_TRUE(
      minibatch->graph.members.indptr.equal(at::tensor({0, 2, 4}, at::kInt)));
  EXPECT_EQ(minibatch->graph.members.index.size(0), 4);
}

TEST_F(MinibatchTest, EdgesBringLinksInsteadOfLabels) {
  JobSpec job = TwoHops();
  job.seed_kind = SeedKind::kEdge;
  job.split.clear();
  LoaderOptions options;
  options.seeds.emplace().ids = {9, 4, 9};
  options.seeds->dst = {4, 5, 6};
  const auto loader = Loader::Create(source_, job, options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto step = (*loader)->Next();
  ASSERT_TRUE(step.ok()) << step.status();
  Task task = Task::Parse("link", "").value();
  task.negatives = NegativeMode::kInBatch;
  const auto minibatch = MakeMinibatch(*(*step)->batch, *sage_, task);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  EXPECT_EQ(minibatch->seeds, 3);
  EXPECT_EQ(minibatch->labelled, 3);
  EXPECT_FALSE(minibatch->labels.defined());
  ASSERT_TRUE(minibatch->links.has_value());
  EXPECT_EQ(minibatch->links->negatives, NegativeShape::kInBatch);
  EXPECT_TRUE(minibatch->links->id.dst.equal(at::tensor({4, 5, 6}, at::kLong)));
}

TEST_F(MinibatchTest, NamesTheColumnThatIsMissing) {
  Columns columns;
  columns.features = false;
  absl::Status status =
      MakeMinibatch(BatchOf(source_, TwoHops(), {9}, columns), *sage_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(), "the batch has no features of node type node");
  EXPECT_EQ(ReasonOf(status), "batch_without_features");

  // Rows of subjects, which have no features, are learned.
  const auto source = Serve(PaperGraph(40, 20), "minibatch_papers");
  const auto typed = Model::Create(Config(ModelKind::kSage),
                                   GraphShape::Of(source->manifest().schema, 0,
                                                  Direction::kIn))
                         .value();
  JobSpec job = TwoHops();
  job.seed_type = "paper";
  columns = {};
  status = MakeMinibatch(BatchOf(source, job, {9}, columns), *typed).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(),
            "the batch has no original ids of node type subject, whose "
            "embeddings are learned\nrequest them in the batch's columns");
  AskForColumns(*typed, columns);
  EXPECT_TRUE(columns.original_ids);
  EXPECT_TRUE(MakeMinibatch(BatchOf(source, job, {9}, columns), *typed).ok());
}

TEST_F(MinibatchTest, OtherFeaturesBecomeFloats) {
  TestGraph graph = ClassGraph(60, 20);
  std::vector<double> cells(60 * 6);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<double>(i);
  graph.types[0].feature = Array::Adopt(std::move(cells), {60, 6});
  const auto source = Serve(graph, "minibatch_doubles");
  const auto minibatch =
      MakeMinibatch(BatchOf(source, TwoHops(), {9, 4}), *sage_);
  ASSERT_TRUE(minibatch.ok()) << minibatch.status();
  const at::Tensor x = minibatch->graph.nodes[0].x;
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_EQ(x[0][0].item().toFloat(), 54);
  EXPECT_EQ(x[1][5].item().toFloat(), 29);
}

// GCN divides by degrees; GAT sees each node among its own neighbours.
TEST_F(MinibatchTest, GivesAModelTheListsAndWeightsThatItReads) {
  Columns columns;
  columns.degrees = true;
  const Batch batch = BatchOf(source_, TwoHops(), {9, 4}, columns);
  const int64_t edges = batch.edges[0].edge_count();
  const int64_t expanded = batch.edges[0].indptr.rows() - 1;
  const auto lists_for = [&](ModelKind kind) {
    const auto model = Model::Create(Config(kind)).value();
    return MakeMinibatch(batch, *model)->graph.neighbors[0];
  };
  const Neighbors sage = lists_for(ModelKind::kSage);
  EXPECT_EQ(sage.index.size(0), edges);
  EXPECT_FALSE(sage.edge_weight.defined());
  const Neighbors gcn = lists_for(ModelKind::kGcn);
  EXPECT_EQ(gcn.edge_weight.size(0), edges);
  EXPECT_EQ(gcn.self_weight.size(0), batch.nodes[0].count());
  const auto indptr = batch.edges[0].indptr.As<uint32_t>();
  const auto neighbor = batch.edges[0].neighbor.As<uint32_t>();
  int64_t loops = 0;
  for (uint32_t i = 0; i < expanded; ++i) {
    for (uint32_t e = indptr[i]; e < indptr[i + 1]; ++e) {
      loops += neighbor[e] == i;
    }
  }
  EXPECT_EQ(lists_for(ModelKind::kGat).index.size(0), edges - loops + expanded);
}

TEST_F(MinibatchTest, AsksForTheColumnsOfAModel) {
  for (const ModelKind kind : {ModelKind::kSage, ModelKind::kGcn}) {
    const auto model = Model::Create(Config(kind)).value();
    for (const bool asked : {false, true}) {
      Columns columns;
      columns.original_ids = asked;
      columns.edge_features = true;
      columns.degrees = !model->weighs_neighbors();
      AskForColumns(*model, columns);
      EXPECT_EQ(columns.degrees, kind == ModelKind::kGcn);
      EXPECT_EQ(columns.original_ids, asked);
      EXPECT_FALSE(columns.edge_features);
    }
  }
}

}  // namespace
}  // namespace millrace::testing
