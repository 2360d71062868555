// SPDX-License-Identifier: Apache-2.0
// Models on a device whose memory the host cannot touch.
#include "tests/support/pretend_device.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/attention.h"
#include "client/nn/model.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using testing::Ints;

at::Tensor To(const at::Tensor& tensor, at::Device device) {
  return tensor.defined() ? tensor.to(device) : tensor;
}

Neighbors To(const Neighbors& lists, at::Device device,
             const std::vector<uint32_t>& offsets) {
  Neighbors moved{To(lists.indptr, device), To(lists.index, device),
                  To(lists.edge_weight, device), To(lists.self_weight, device)};
  for (const uint32_t offset : offsets) {
    const int64_t rows = offset;
    if (rows > lists.rows()) continue;
    moved.cuts.push_back({rows, lists.indptr[rows].item().toLong()});
  }
  return moved;
}

Subgraph To(const Subgraph& graph, const GraphShape& shape, at::Device device) {
  Subgraph moved;
  for (const SubgraphNodes& nodes : graph.nodes) {
    moved.nodes.push_back({To(nodes.x, device), To(nodes.original_id, device),
                           nodes.hop_offsets});
  }
  for (size_t r = 0; r < graph.neighbors.size(); ++r) {
    moved.neighbors.push_back(
        To(graph.neighbors[r], device,
           graph.nodes[shape.relations[r].lists].hop_offsets));
  }
  return moved;
}

// Two seeds, three nodes one hop away, two nodes two hops away.
Subgraph FiveMore() {
  Subgraph graph;
  graph.nodes.resize(1);
  graph.nodes[0].x = Initializer(4).Uniform({7, 5}, 2);
  graph.nodes[0].hop_offsets = {0, 2, 5, 7};
  graph.neighbors = {{Ints({0, 3, 5, 7, 8, 10}),
                      Ints({2, 3, 0, 4, 2, 0, 5, 6, 1, 5}),
                      {},
                      {}}};
  return graph;
}

// Runs a step forward and backward. Returns the model's tensors, then the
// result and the gradients, all on the CPU.
std::vector<at::Tensor> RunStep(const ModelConfig& config,
                                const GraphShape& shape, const Subgraph& graph,
                                at::Device device) {
  const auto model = Model::Create(config, shape, device).value();
  const Pass pass{.training = true, .dropout = {.seed = 3, .batch = 2}};
  const at::Tensor rows = model->Forward(To(graph, shape, device), pass);
  EXPECT_EQ(rows.device(), device);
  rows.square().sum().backward();
  std::vector<at::Tensor> all;
  for (const NamedTensor& named : model->parameters().State()) {
    EXPECT_EQ(named.tensor.device(), device) << named.name;
    all.push_back(named.tensor.detach().cpu());
  }
  all.push_back(rows.detach().cpu());
  for (const NamedTensor& named : model->parameters().parameters()) {
    if (!named.tensor.grad().defined()) continue;
    all.push_back(named.tensor.grad().cpu());
  }
  return all;
}

void ExpectSameBits(const ModelConfig& config, const GraphShape& shape,
                    const Subgraph& graph) {
  const std::vector<at::Tensor> want = RunStep(config, shape, graph, at::kCPU);
  const std::vector<at::Tensor> got =
      RunStep(config, shape, graph, PretendDevice());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(got[i].equal(want[i]))
        << "tensor " << i << " " << ShapeText(want[i].sizes())
        << " differs by up to " << got[i].sub(want[i]).abs().max();
  }
}

struct StepCase {
  std::string name;
  ModelConfig config;
};

class PretendDeviceTest : public ::testing::TestWithParam<StepCase> {};

TEST_P(PretendDeviceTest, ModelsHaveTheBitsOfTheCpu) {
  ModelConfig config = GetParam().config;
  config.in = 5;
  config.hidden = 4;
  config.out = 3;
  config.layers = 2;
  config.dropout = 0.5;
  Subgraph graph = FiveMore();
  if (config.kind == ModelKind::kGcn) {
    GcnWeights(config.gcn_norm, 7, Ints({3, 4, 2, 1, 5, 2, 9}),
               graph.neighbors[0]);
  }
  if (config.kind == ModelKind::kGat || config.kind == ModelKind::kGatv2) {
    graph.neighbors[0] = WithSelfLoops(graph.neighbors[0]);
  }
  const int64_t before = ListReductionsOfPretendDevice();
  ExpectSameBits(config, GraphShape::Homogeneous(5), graph);
  const bool attends =
      config.kind == ModelKind::kGat || config.kind == ModelKind::kGatv2;
  EXPECT_EQ(ListReductionsOfPretendDevice() - before,
            attends ? 0 : config.layers);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PretendDeviceTest,
    ::testing::Values(
        StepCase{"Sage", {.kind = ModelKind::kSage, .norm = NormKind::kBatch}},
        StepCase{"SageMax",
                 {.kind = ModelKind::kSage, .aggregation = Aggregation::kMax}},
        StepCase{"Gcn", {.kind = ModelKind::kGcn, .norm = NormKind::kLayer}},
        StepCase{"Gat", {.kind = ModelKind::kGat, .heads = 2}},
        StepCase{"Gatv2", {.kind = ModelKind::kGatv2, .heads = 2}},
        StepCase{"Gin", {.kind = ModelKind::kGin, .norm = NormKind::kBatch}}),
    [](const auto& info) { return info.param.name; });

TEST(PretendDeviceMemoryTest, TheHostCannotTouchATensor) {
  const at::Tensor ones =
      at::ones({3}, at::TensorOptions(at::kFloat).device(PretendDevice()));
  EXPECT_EQ(ones.sum().item().toDouble(), 3);
  EXPECT_DEATH(
      {
        volatile float value = *ones.const_data_ptr<float>();
        static_cast<void>(value);
      },
      "");
}

class PretendStreamTest : public ::testing::Test {
 protected:
  // Returns ones that another stream writes.
  at::Tensor Written() const {
    const c10::StreamGuard guard(other_);
    return at::ones({3}, at::TensorOptions(at::kFloat).device(PretendDevice()));
  }
  c10::Event Record() const {
    c10::Event event(c10::kPrivateUse1);
    event.record(other_);
    return event;
  }

  const c10::impl::VirtualGuardImpl guard_{c10::kPrivateUse1};
  const c10::Stream other_ = guard_.getStreamFromGlobalPool(PretendDevice());
  const c10::Stream own_ = guard_.getStream(PretendDevice());
};

TEST_F(PretendStreamTest, AStreamMustWaitForWhatAnotherWrites) {
  const c10::Event early = Record();
  const at::Tensor ones = Written();
  EXPECT_THROW(ones.sum(), c10::Error);
  EXPECT_THROW(ones.cpu(), c10::Error);
  EXPECT_THROW(at::Tensor(ones).zero_(), c10::Error);
  EXPECT_THROW(ones.index({at::zeros({1}, ones.options().dtype(at::kLong))}),
               c10::Error);
  // An event from before the write.
  early.block(own_);
  EXPECT_THROW(ones.sum(), c10::Error);
  Record().block(own_);
  EXPECT_EQ(ones.sum().item().toDouble(), 3);
  // Other streams have not waited.
  const c10::StreamGuard third(guard_.getStreamFromGlobalPool(PretendDevice()));
  const at::Tensor more = Written();
  EXPECT_THROW(more.sum(), c10::Error);
}

TEST_F(PretendStreamTest, TheHostCanWaitInPlaceOfTheStream) {
  const at::Tensor one = Written();
  Record().synchronize();
  EXPECT_EQ(one.sum().item().toDouble(), 3);
  const at::Tensor two = Written();
  EXPECT_THROW(two.sum(), c10::Error);
  other_.synchronize();
  EXPECT_EQ(two.sum().item().toDouble(), 3);
  const at::Tensor three = Written();
  {
    const c10::StreamGuard guard(other_);
    three.cpu();
  }
  EXPECT_EQ(three.sum().item().toDouble(), 3);
}

TEST_F(PretendStreamTest, KnowsWhatTheHostMustLeaveInPlace) {
  const at::Tensor source = at::ones({3});
  const float* memory = source.const_data_ptr<float>();
  source.to(PretendDevice());
  EXPECT_FALSE(PretendDeviceReads(memory));
  {
    const c10::StreamGuard guard(other_);
    source.to(PretendDevice(), /*non_blocking=*/true);
  }
  EXPECT_TRUE(PretendDeviceReads(memory + 2));
  EXPECT_FALSE(PretendDeviceReads(memory + 3));
  own_.synchronize();
  EXPECT_TRUE(PretendDeviceReads(memory));
  other_.synchronize();
  EXPECT_FALSE(PretendDeviceReads(memory));
}

TEST(PretendDeviceMemoryTest, DevicesDoNotMix) {
  const at::Tensor ones =
      at::ones({3}, at::TensorOptions(at::kFloat).device(PretendDevice()));
  EXPECT_THROW(ones.add(at::ones({3})), c10::Error);
}

TEST(PretendDeviceMemoryTest, TensorsGiveTheirMemoryBack) {
  const int64_t before = BytesOfPretendDevice();
  {
    const at::Tensor zeros = at::zeros(
        {1000}, at::TensorOptions(at::kFloat).device(PretendDevice()));
    EXPECT_EQ(BytesOfPretendDevice(), before + 4000);
  }
  EXPECT_EQ(BytesOfPretendDevice(), before);
}

}  // namespace
}  // namespace millrace
