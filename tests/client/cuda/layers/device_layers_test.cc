// SPDX-License-Identifier: Apache-2.0
// The operators on a device against those of the CPU.
#include <ATen/Functions.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "client/cuda/layers/layers.h"
#include "client/nn/aggregate.h"
#include "client/nn/operators/operators.h"
#include "tests/client/cuda/layers/device_operands.h"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

// The lists without what follows them in `index`.
at::Tensor Index(const TestLists& lists) {
  return IntTensor(lists.index).narrow(0, 0, lists.edges());
}
Neighbors HostLists(const TestLists& lists) {
  return {IntTensor(lists.indptr), Index(lists), {}, {}};
}

TEST(DeviceLayersTest, SelfLoopsAreTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    DeviceOperands device;
    const auto [indptr, index] =
        operators::SelfLoops(IntTensor(lists.indptr), Index(lists));
    auto* looped_indptr = device.Room<int32_t>(indptr);
    auto* looped_index = device.Room<int32_t>(at::empty(
        {static_cast<int64_t>(lists.index.size()) + lists.rows()}, at::kInt));
    Expect(layers::SelfLoops(device.Upload(lists),
                             {looped_indptr, looped_index}, device.work()));
    ExpectSame(device.Download(looped_indptr, indptr), indptr, lists.name);
    ExpectSame(device.Download(looped_index, index), index, lists.name);
  }
}

TEST(DeviceLayersTest, GcnWeightsAreTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    DeviceOperands device;
    const at::Tensor degree = at::arange(lists.sources, at::kInt).mul(7);
    const Neighbors host = HostLists(lists);
    const auto full =
        operators::FullGcnWeights(host.indptr, host.index, degree);
    const auto sampled =
        operators::SampledGcnWeights(host.indptr, host.index, lists.sources);
    const layers::GcnWeights weights = {device.Room<float>(std::get<0>(full)),
                                        device.Room<float>(std::get<1>(full))};
    const auto expect =
        [&](const std::tuple<at::Tensor, at::Tensor>& expected) {
          const auto& [edge, self] = expected;
          ExpectSame(device.Download(weights.edge, edge), edge, lists.name);
          ExpectSame(device.Download(weights.self, self), self, lists.name);
        };
    const layers::Lists view = device.Upload(lists);
    Expect(layers::FullGcnWeights(view, device.Upload<int32_t>(degree),
                                  lists.sources, weights, device.work()));
    expect(full);
    Expect(
        layers::SampledGcnWeights(view, lists.sources, weights, device.work()));
    expect(sampled);
  }
}

TEST(DeviceLayersTest, DropoutMasksAreTheCpus) {
  for (const int64_t count : {0, 1, 8, 1003}) {
    for (const int64_t threshold : {1, 19661, 65536}) {
      DeviceOperands device;
      const at::Tensor expected = operators::DropoutMask(
          at::empty({0}), count, 0xFEDCBA9876543210, threshold);
      auto* mask = device.Room<float>(expected);
      Expect(layers::DropoutMask(0xFEDCBA9876543210, threshold, count, mask,
                                 device.work()));
      ExpectSame(device.Download(mask, expected), expected,
                 std::to_string(count));
    }
  }
}

// What is aggregated, on the CPU.
struct HostAggregation {
  HostAggregation(const TestLists& lists, int64_t width)
      : source(Random({lists.sources, width}, 1)),
        grad(Random({lists.rows(), width}, 2)),
        neighbors(HostLists(lists)) {
    neighbors.edge_weight = Random({lists.edges()}, 3);
  }

  at::Tensor source, grad;
  Neighbors neighbors;
};

struct Aggregated {
  at::Tensor out, source_grad;
};

Aggregated AggregateOnCpu(layers::Reduction how, const HostAggregation& host) {
  const at::Tensor source = host.source.clone().requires_grad_();
  const auto aggregate = [&] {
    switch (how) {
      case layers::Reduction::kSum:
        return Aggregate(Aggregation::kSum, source, host.neighbors);
      case layers::Reduction::kMean:
        return Aggregate(Aggregation::kMean, source, host.neighbors);
      case layers::Reduction::kMax:
        return Aggregate(Aggregation::kMax, source, host.neighbors);
      case layers::Reduction::kWeightedSum:
        return WeightedSumOfNeighbors(source, host.neighbors);
    }
    return at::Tensor();
  };
  const at::Tensor out = aggregate();
  // Without edges the result does not depend on the source.
  if (!out.requires_grad()) return {out, at::zeros_like(host.source)};
  out.backward(host.grad);
  return {out.detach(), source.grad()};
}

Aggregated AggregateOnDevice(layers::Reduction how, const TestLists& lists,
                             const HostAggregation& host) {
  DeviceOperands device;
  const layers::Aggregation input = {
      how, device.Upload(lists), lists.sources, host.source.size(1),
      device.Upload<float>(host.neighbors.edge_weight)};
  auto* out = device.Room<float>(host.grad);
  auto* largest_edge = device.Room<int32_t>(host.grad);
  auto* source_grad = device.Room<float>(host.source);
  Expect(layers::Aggregate(input, device.Upload<float>(host.source), out,
                           largest_edge, device.work()));
  Expect(layers::AggregateBackward(input, device.Upload<float>(host.grad),
                                   largest_edge, source_grad, device.work()));
  return {device.Download(out, host.grad),
          device.Download(source_grad, host.source)};
}

// The CPU adds up the gradients of sums in an order of its own, and rounds
// weighted terms as its instructions do.
void ExpectAggregation(layers::Reduction how, const TestLists& lists,
                       int64_t width) {
  const HostAggregation host(lists, width);
  const Aggregated expected = AggregateOnCpu(how, host);
  const Aggregated actual = AggregateOnDevice(how, lists, host);
  if (how == layers::Reduction::kWeightedSum) {
    ExpectClose(actual.out, expected.out, lists.name + ", weighted sums");
  } else {
    ExpectSame(actual.out, expected.out, lists.name);
  }
  if (how == layers::Reduction::kMax) {
    ExpectSame(actual.source_grad, expected.source_grad, lists.name);
  } else {
    ExpectClose(actual.source_grad, expected.source_grad, lists.name);
  }
}

TEST(DeviceLayersTest, AggregationIsTheCpus) {
  using layers::Reduction;
  for (const TestLists& lists : JoinedLists()) {
    for (const Reduction how : {Reduction::kSum, Reduction::kMean,
                                Reduction::kMax, Reduction::kWeightedSum}) {
      ExpectAggregation(how, lists, 33);
    }
  }
}

// More edges than a block sorts, and more sources than it sorts at once.
TEST(DeviceLayersTest, AggregationOfManyEdgesIsTheCpus) {
  ExpectAggregation(layers::Reduction::kMax, RandomLists(250, 300, 40, 7), 1);
}

struct HeadShape {
  int64_t heads, width;
};

// What both kinds of attention read on the CPU. Without a mask it is empty.
struct HostAttention {
  HostAttention(const TestLists& lists, HeadShape shape, bool masked)
      : mask(masked ? Random({lists.edges(), shape.heads}, 8).relu()
                    : at::empty({0}, at::kFloat)),
        lists{IntTensor(lists.indptr), Index(lists), mask},
        grad(Random({lists.rows(), shape.heads, shape.width}, 9)) {}

  at::Tensor mask;
  operators::AttentionLists lists;
  at::Tensor grad;
};

void ExpectAttention(const TestLists& lists, HeadShape shape, bool masked) {
  DeviceOperands device;
  const HostAttention host(lists, shape, masked);
  const at::Tensor values = Random({lists.sources, shape.width}, 1);
  const at::Tensor source_score = Random({lists.sources, shape.heads}, 2);
  const at::Tensor target_score = Random({lists.rows(), shape.heads}, 3);
  const layers::Attention input = {device.Upload(lists),
                                   lists.sources,
                                   shape.heads,
                                   shape.width,
                                   device.Upload<float>(values),
                                   device.Upload<float>(source_score),
                                   device.Upload<float>(target_score),
                                   device.Upload<float>(host.mask)};
  const auto [sums, weights] =
      operators::Attend(values, source_score, target_score, host.lists);
  const layers::Attended attended = {device.Room<float>(sums),
                                     device.Room<float>(weights)};
  Expect(layers::Attend(input, attended, device.work()));
  ExpectClose(device.Download(attended.sums, sums), sums,
              lists.name + ", sums");
  ExpectClose(device.Download(attended.weights, weights), weights,
              lists.name + ", weights");

  const auto [value_grad, source_grad, target_grad] = operators::AttendBackward(
      host.grad, values, source_score, target_score, host.lists, weights, true);
  const layers::AttentionGradients gradients = {
      device.Room<float>(value_grad), device.Room<float>(source_grad),
      device.Room<float>(target_grad)};
  Expect(layers::AttendBackward(
      input, {device.Upload<float>(host.grad), attended.weights}, gradients,
      device.work()));
  ExpectClose(device.Download(gradients.values, value_grad), value_grad,
              lists.name + ", values");
  ExpectClose(device.Download(gradients.source_score, source_grad), source_grad,
              lists.name + ", source scores");
  ExpectClose(device.Download(gradients.target_score, target_grad), target_grad,
              lists.name + ", target scores");
}

TEST(DeviceLayersTest, AttentionIsCloseToTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    ExpectAttention(lists, {2, 3}, /*masked=*/true);
  }
  ExpectAttention(RandomLists(9, 12, 6, 1), {1, 33}, /*masked=*/false);
}

void ExpectAttentionV2(const TestLists& lists, HeadShape shape, bool masked) {
  DeviceOperands device;
  const HostAttention host(lists, shape, masked);
  const at::Tensor source =
      Random({lists.sources, shape.heads, shape.width}, 1);
  const at::Tensor target = Random({lists.rows(), shape.heads, shape.width}, 2);
  const at::Tensor score =
      Random({1, shape.heads, shape.width}, 3).div(shape.width);
  const layers::AttentionV2 input = {device.Upload(lists),
                                     lists.sources,
                                     shape.heads,
                                     shape.width,
                                     device.Upload<float>(source),
                                     device.Upload<float>(target),
                                     device.Upload<float>(score),
                                     device.Upload<float>(host.mask)};
  const auto [sums, weights] =
      operators::AttendV2(source, target, score, host.lists);
  const layers::Attended attended = {device.Room<float>(sums),
                                     device.Room<float>(weights)};
  Expect(layers::AttendV2(input, attended, device.work()));
  ExpectClose(device.Download(attended.sums, sums), sums,
              lists.name + ", sums");
  ExpectClose(device.Download(attended.weights, weights), weights,
              lists.name + ", weights");

  const auto [source_grad, target_grad, score_grad] =
      operators::AttendV2Backward(host.grad, source, target, score, host.lists,
                                  weights);
  const layers::AttentionV2Gradients gradients = {
      device.Room<float>(source_grad), device.Room<float>(target_grad),
      device.Room<float>(score_grad)};
  Expect(layers::AttendV2Backward(
      input, {device.Upload<float>(host.grad), attended.weights}, gradients,
      device.work()));
  ExpectClose(device.Download(gradients.source, source_grad), source_grad,
              lists.name + ", sources");
  ExpectClose(device.Download(gradients.target, target_grad), target_grad,
              lists.name + ", targets");
  ExpectClose(device.Download(gradients.score, score_grad), score_grad,
              lists.name + ", vectors");
}

TEST(DeviceLayersTest, AttentionV2IsCloseToTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    ExpectAttentionV2(lists, {2, 3}, /*masked=*/true);
  }
  ExpectAttentionV2(RandomLists(9, 12, 6, 1), {1, 33}, /*masked=*/false);
}

TEST(DeviceLayersTest, SaysThatThereIsTooLittleMemory) {
  const TestLists lists = RandomLists(9, 12, 6, 1);
  DeviceOperands device;
  const at::Tensor source = Random({lists.sources, 4}, 1);
  const at::Tensor grad = Random({lists.rows(), 4}, 2);
  const layers::Aggregation input = {
      layers::Reduction::kSum, device.Upload(lists), lists.sources, 4, nullptr};
  auto* source_grad = device.Room<float>(source);
  const float* row_grad = device.Upload<float>(grad);
  int n = 0;
  while (true) {
    device.FailAllocation(n++);
    const cudaError_t status = layers::AggregateBackward(
        input, row_grad, nullptr, source_grad, device.work());
    if (!device.allocation_failed()) {
      Expect(status);
      break;
    }
    ASSERT_EQ(status, cudaErrorMemoryAllocation);
  }
  // The five arrays of edges, that of sources, and what the sort takes.
  EXPECT_EQ(n, 8);
}

}  // namespace
}  // namespace millrace::testing
