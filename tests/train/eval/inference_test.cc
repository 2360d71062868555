// SPDX-License-Identifier: Apache-2.0
// Full fanouts, layer-wise inference and a dense reimplementation agree.
#include "client/train/eval/inference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "client/tensor/batch_tensors.h"
#include "client/train/task/minibatch.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

constexpr int64_t kNodes = 90;

ModelConfig Config(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.in = 6;
  config.hidden = 8;
  config.out = 4;
  config.seed = 5;
  return config;
}

// adjacency[v][u]: number of edges from u to v.
at::Tensor Adjacency(const TestGraph& graph) {
  at::Tensor adjacency = at::zeros({kNodes, kNodes}, at::kDouble);
  auto cells = adjacency.accessor<double, 2>();
  for (const auto& [u, v] : graph.relations[0].edges) cells[v][u] += 1;
  return adjacency;
}

// The matrices that a layer applies to neighbours' and to the node's own
// features.
struct DenseLayer {
  at::Tensor neighbors, self;
};

DenseLayer Dense(const TestGraph& graph, const ModelConfig& config) {
  const at::Tensor adjacency = Adjacency(graph);
  const at::Tensor degree = adjacency.sum(1);
  const at::Tensor identity = at::eye(kNodes, at::kDouble);
  if (config.kind == ModelKind::kSage) {
    return {adjacency / degree.clamp_min(1).unsqueeze(1), identity};
  }
  if (config.gcn_norm == GcnNorm::kFull) {
    const at::Tensor root = (degree + 1).rsqrt();
    return {root.unsqueeze(1) * adjacency * root.unsqueeze(0),
            identity / (degree + 1).unsqueeze(1)};
  }
  const at::Tensor others = adjacency * (1 - identity);
  const at::Tensor root = (others.sum(1) + 1).rsqrt();
  return {root.unsqueeze(1) * (others + identity) * root.unsqueeze(0),
          at::zeros_like(identity)};
}

at::Tensor DenseForward(const TestGraph& graph, const Model& model) {
  std::map<std::string, at::Tensor> state;
  for (const NamedTensor& named : model.parameters().State()) {
    state[named.name] = named.tensor.detach().to(at::kDouble);
  }
  const DenseLayer dense = Dense(graph, model.config());
  at::Tensor x = ViewAsTensor(graph.types[0].feature).value().to(at::kDouble);
  for (int i = 0; i < model.config().layers; ++i) {
    const std::string conv = "convs." + std::to_string(i);
    const at::Tensor sum = at::matmul(dense.neighbors, x);
    const at::Tensor own = at::matmul(dense.self, x);
    x = model.config().kind == ModelKind::kSage
            ? at::linear(sum, state[conv + ".lin_l.weight"],
                         state[conv + ".lin_l.bias"]) +
                  at::linear(own, state[conv + ".lin_r.weight"])
            : at::linear(sum + own, state[conv + ".lin.weight"],
                         state[conv + ".bias"]);
    if (i + 1 < model.config().layers) x = at::relu(x);
  }
  return x;
}

// The acceptance criterion for exact inference.
void ExpectClose(const at::Tensor& got, const at::Tensor& want) {
  const double difference =
      (got.to(at::kDouble) - want).abs().max().item().toDouble();
  const double largest = want.abs().max().item().toDouble();
  EXPECT_LE(difference, 1e-5 * std::max(1.0, largest));
}

struct Case {
  ModelKind kind;
  GcnNorm norm;
  int parts;
};

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return std::string(InfoOf(info.param.kind).name) +
         (info.param.norm == GcnNorm::kFull ? "" : "Sampled") +
         std::to_string(info.param.parts);
}

class InferenceTest : public ::testing::TestWithParam<Case> {};

TEST_P(InferenceTest, EqualsTheDenseModel) {
  const TestGraph graph = ClassGraph(kNodes, 40);
  const auto source = Serve(graph, "inference", GetParam().parts);
  ModelConfig config = Config(GetParam().kind);
  config.gcn_norm = GetParam().norm;
  const auto model = Model::Create(config).value();
  const at::Tensor want = DenseForward(graph, *model);
  RunRanks(2, [&](Collectives& collectives) {
    FullInference inference(source, JobSpec{}, *model, collectives,
                            {.chunk = 13});
    const auto got = inference.RunForAll(2);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectClose(*got, want);
  });
}

// Without GcnNorm::kSampled, for which a subgraph would have to know the
// degrees of its outermost nodes.
class FullFanoutsTest : public ::testing::TestWithParam<Case> {};

TEST_P(FullFanoutsTest, GivesTheLogitsOfTheDenseModel) {
  const TestGraph graph = ClassGraph(kNodes, kNodes - 40);
  const auto source = Serve(graph, "full_fanouts", GetParam().parts);
  const auto model = Model::Create(Config(GetParam().kind)).value();
  const at::Tensor want = DenseForward(graph, *model);
  JobSpec job;
  job.fanouts = {-1, -1};
  job.batch_size = 17;
  c10::NoGradGuard no_grad;
  for (const Batch& batch : AllBatches(source, job)) {
    const auto minibatch = MakeMinibatch(batch, *model);
    ASSERT_TRUE(minibatch.ok()) << minibatch.status();
    const at::Tensor logits =
        minibatch->OfSeeds(model->Forward(minibatch->graph, {}));
    const at::Tensor ids = ViewAsTensor(batch.seed).value();
    ExpectClose(logits, want.index_select(0, ids));
  }
}

// Two layers, with 8 and `out` columns.
class InferenceMemoryTest : public ::testing::Test {
 protected:
  MemoryNeed NeedOf(int64_t out, bool for_all, Collectives& collectives,
                    const InferenceOptions& options) const {
    ModelConfig config = Config(ModelKind::kSage);
    config.out = out;
    const auto model = Model::Create(config).value();
    return FullInference(source_, JobSpec{}, *model, collectives, options)
        .MemoryNeeded(2, for_all);
  }

  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(kNodes, 40), "inference_memory");
};

constexpr uint64_t kColumnBytes = kNodes * sizeof(float);

TEST_F(InferenceMemoryTest, RankAloneHoldsInputAndOutput) {
  RunRanks(1, [&](Collectives& alone) {
    for (const bool for_all : {false, true}) {
      const MemoryNeed need = NeedOf(100, for_all, alone, {});
      EXPECT_EQ(need.process, (8 + 100) * kColumnBytes);
      EXPECT_EQ(need.host, need.process);
    }
  });
}

TEST_F(InferenceMemoryTest, RanksHoldAllInputAndTheirOwnOutput) {
  RunRanks(2, [&](Collectives& pair) {
    const InferenceOptions same_host = {.ranks_on_host = 2};
    const MemoryNeed wide = NeedOf(100, false, pair, same_host);
    EXPECT_EQ(wide.process, (8 + 100 / 2) * kColumnBytes);
    EXPECT_EQ(wide.host, (2 * 8 + 100) * kColumnBytes);
    // The peak is reached while the ranks exchange their rows of the first
    // layer.
    const MemoryNeed narrow = NeedOf(4, false, pair, same_host);
    EXPECT_EQ(narrow.process, (8 + 8 / 2) * kColumnBytes);
    EXPECT_EQ(narrow.host, (2 * 8 + 8) * kColumnBytes);
    // Here the peak is reached with the rows of the last layer.
    const MemoryNeed predicted = NeedOf(100, true, pair, same_host);
    EXPECT_EQ(predicted.process, (100 + 100 / 2) * kColumnBytes);
    EXPECT_EQ(predicted.host, (2 * 100 + 100) * kColumnBytes);
    // The two ranks are on two hosts.
    EXPECT_EQ(NeedOf(100, false, pair, {}).host, wide.process);
  });
}

TEST_F(InferenceMemoryTest, OneRankThatComputesHoldsAllOutput) {
  RunRanks(2, [&](Collectives& pair) {
    const MemoryNeed need =
        NeedOf(100, false, pair, {.all_ranks = false, .ranks_on_host = 2});
    const bool computes = pair.rank() == 0;
    EXPECT_EQ(need.process, (8 + (computes ? 100 : 0)) * kColumnBytes);
    EXPECT_EQ(need.host, (2 * 8 + (computes ? 100 : 0)) * kColumnBytes);
  });
}

// Memory taken by other ranks of the host would count twice.
TEST_F(InferenceMemoryTest, RunDoesNotCheck) {
  const auto model = Model::Create(Config(ModelKind::kSage)).value();
  RunRanks(2, [&](Collectives& collectives) {
    FullInference inference(source_, JobSpec{}, *model, collectives,
                            {.ranks_on_host = 1 << 30});
    EXPECT_EQ(inference.CheckMemory(2, /*for_all=*/true).code(),
              absl::StatusCode::kResourceExhausted);
    const auto rows = inference.RunForAll(2);
    EXPECT_TRUE(rows.ok()) << rows.status();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Models, InferenceTest,
    ::testing::Values(Case{ModelKind::kSage, GcnNorm::kFull, 1},
                      Case{ModelKind::kSage, GcnNorm::kFull, 3},
                      Case{ModelKind::kGcn, GcnNorm::kFull, 1},
                      Case{ModelKind::kGcn, GcnNorm::kFull, 3},
                      Case{ModelKind::kGcn, GcnNorm::kSampled, 3}),
    CaseName);
INSTANTIATE_TEST_SUITE_P(
    Models, FullFanoutsTest,
    ::testing::Values(Case{ModelKind::kSage, GcnNorm::kFull, 1},
                      Case{ModelKind::kSage, GcnNorm::kFull, 3},
                      Case{ModelKind::kGcn, GcnNorm::kFull, 1},
                      Case{ModelKind::kGcn, GcnNorm::kFull, 3}),
    CaseName);

}  // namespace
}  // namespace millrace::testing
