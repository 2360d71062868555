// SPDX-License-Identifier: Apache-2.0
// Every model on every kind of graph: full fanouts, layer-wise inference and
// the dense reimplementation agree.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client/tensor/batch_tensors.h"
#include "client/train/eval/inference.h"
#include "client/train/task/minibatch.h"
#include "common/base/strings.h"
#include "tests/train/dense_model.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

struct Case {
  ModelKind kind = ModelKind::kSage;
  bool typed = false;  // PaperGraph, else ClassGraph
  int heads = 1;
  int bases = 0;
  Aggregation aggregation = Aggregation::kMean;
  int layers = 2;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {.kind = ModelKind::kGat, .heads = 3},
      {.kind = ModelKind::kGatv2, .heads = 3},
      {.kind = ModelKind::kGin},
      {.kind = ModelKind::kRgcn},
      {.kind = ModelKind::kSage, .aggregation = Aggregation::kSum},
      {.kind = ModelKind::kSage, .aggregation = Aggregation::kMax},
      {.kind = ModelKind::kSage, .typed = true},
      {.kind = ModelKind::kSage, .typed = true, .layers = 3},
      {.kind = ModelKind::kGat, .typed = true, .heads = 2},
      {.kind = ModelKind::kGatv2, .typed = true, .heads = 2},
      {.kind = ModelKind::kGin, .typed = true},
      {.kind = ModelKind::kRgcn, .typed = true},
      {.kind = ModelKind::kRgcn, .typed = true, .bases = 2}};
  return cases;
}

std::string NameOf(const Case& c) {
  return StrCat(c.typed ? "typed " : "", InfoOf(c.kind).name, ", heads ",
                c.heads, ", bases ", c.bases, ", layers ", c.layers,
                ", aggregation ", static_cast<int>(c.aggregation));
}

TestGraph GraphOf(bool typed) {
  return typed ? PaperGraph(80, 30) : ClassGraph(80, 30);
}

std::unique_ptr<Model> MakeModel(const Case& c, const BatchSource& source) {
  ModelConfig config;
  config.kind = c.kind;
  config.hidden = 12;
  config.out = 4;
  config.heads = c.heads;
  config.bases = c.bases;
  config.aggregation = c.aggregation;
  config.layers = c.layers;
  config.seed = 5;
  return Model::Create(config, GraphShape::Of(source.manifest().schema, 0,
                                              Direction::kIn))
      .value();
}

void ExpectClose(const at::Tensor& got, const at::Tensor& want) {
  const double difference =
      (got.to(at::kDouble) - want).abs().max().item().toDouble();
  const double largest = want.abs().max().item().toDouble();
  EXPECT_GT(largest, 1e-3);
  EXPECT_LE(difference, 1e-5 * std::max(1.0, largest));
}

void ExpectFullFanouts(SampleMethod method, int parts) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(StrCat(NameOf(c), ", method ", static_cast<int>(method)));
    const TestGraph graph = GraphOf(c.typed);
    const auto source = Serve(graph, "whole_fanouts", parts);
    const auto model = MakeModel(c, *source);
    const at::Tensor want = DenseForward(graph, *model);
    JobSpec job;
    job.seed_type = graph.types[0].name;
    job.fanouts.assign(c.layers, kAllNeighbors);
    job.batch_size = 17;
    job.method = method;
    for (const Batch& batch : AllBatches(source, job)) {
      const auto minibatch = MakeMinibatch(batch, *model);
      ASSERT_TRUE(minibatch.ok()) << minibatch.status();
      const at::Tensor logits =
          minibatch->OfSeeds(model->Forward(minibatch->graph, {}));
      ExpectClose(logits,
                  want.index_select(0, ViewAsTensor(batch.seed).value()));
    }
  }
}

class WholeGraphTest : public ::testing::TestWithParam<int> {};

TEST_P(WholeGraphTest, InferenceEqualsTheDenseModel) {
  const std::vector<std::shared_ptr<BatchSource>> sources = {
      Serve(GraphOf(false), "whole_graph", GetParam()),
      Serve(GraphOf(true), "whole_graph_typed", GetParam())};
  RunRanks(2, [&](Collectives& collectives) {
    for (const Case& c : Cases()) {
      SCOPED_TRACE(NameOf(c));
      const auto& source = sources[c.typed];
      const auto model = MakeModel(c, *source);
      FullInference inference(source, JobSpec{}, *model, collectives,
                              {.chunk = 13});
      const auto got = inference.RunForAll(c.layers);
      ASSERT_TRUE(got.ok()) << got.status();
      ExpectClose(*got, DenseForward(GraphOf(c.typed), *model));
    }
  });
}

// All neighbours of all inner nodes; the induced subgraph has more edges
// between outer nodes, which no seed sees.
TEST_P(WholeGraphTest, FullFanoutsGiveTheSameLogits) {
  c10::NoGradGuard no_grad;
  for (const SampleMethod method :
       {SampleMethod::kUniform, SampleMethod::kInduced}) {
    ExpectFullFanouts(method, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, WholeGraphTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace millrace::testing
