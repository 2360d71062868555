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
    const layers::LayerLists view = device.Upload(lists);
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
