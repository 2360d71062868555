// SPDX-License-Identifier: Apache-2.0
// Both kinds of attention on a device against those of the CPU.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "client/cuda/layers/layers.h"
#include "client/nn/operators/operators.h"
#include "tests/client/cuda/layers/device_operands.h"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

// Sums and weights, and then the gradients of what attention reads.
using AttentionTensors = std::vector<at::Tensor>;

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

struct HostGat : HostAttention {
  HostGat(const TestLists& lists, HeadShape shape, bool masked)
      : HostAttention(lists, shape, masked),
        values(Random({lists.sources, shape.width}, 1)),
        source_score(Random({lists.sources, shape.heads}, 2)),
        target_score(Random({lists.rows(), shape.heads}, 3)) {}

  AttentionTensors OnCpu() const;
  // `like` has the shapes of the results.
  AttentionTensors OnDevice(const TestLists& test_lists,
                            const AttentionTensors& like) const;

  at::Tensor values, source_score, target_score;
};

AttentionTensors HostGat::OnCpu() const {
  const auto [sums, weights] =
      operators::Attend(values, source_score, target_score, lists);
  const auto [value_grad, source_grad, target_grad] = operators::AttendBackward(
      grad, values, source_score, target_score, lists, weights, true);
  return {sums, weights, value_grad, source_grad, target_grad};
}

AttentionTensors HostGat::OnDevice(const TestLists& test_lists,
                                   const AttentionTensors& like) const {
  DeviceOperands device;
  const layers::Attention input = {device.Upload(test_lists),
                                   test_lists.sources,
                                   source_score.size(1),
                                   values.size(1),
                                   device.Upload<float>(values),
                                   device.Upload<float>(source_score),
                                   device.Upload<float>(target_score),
                                   device.Upload<float>(mask)};
  std::vector<float*> out;
  for (const at::Tensor& tensor : like) {
    out.push_back(device.Room<float>(tensor));
  }
  Expect(layers::Attend(input, {out[0], out[1]}, device.work()));
  Expect(layers::AttendBackward(input, {device.Upload<float>(grad), out[1]},
                                {out[2], out[3], out[4]}, device.work()));
  return device.Download(out, like);
}

struct HostGatv2 : HostAttention {
  HostGatv2(const TestLists& lists, HeadShape shape, bool masked)
      : HostAttention(lists, shape, masked),
        source(Random({lists.sources, shape.heads, shape.width}, 1)),
        target(Random({lists.rows(), shape.heads, shape.width}, 2)),
        score(Random({1, shape.heads, shape.width}, 3).div(shape.width)) {}

  AttentionTensors OnCpu() const;
  AttentionTensors OnDevice(const TestLists& test_lists,
                            const AttentionTensors& like) const;

  at::Tensor source, target, score;
};

AttentionTensors HostGatv2::OnCpu() const {
  const auto [sums, weights] =
      operators::AttendV2(source, target, score, lists);
  const auto [source_grad, target_grad, score_grad] =
      operators::AttendV2Backward(grad, source, target, score, lists, weights);
  return {sums, weights, source_grad, target_grad, score_grad};
}

AttentionTensors HostGatv2::OnDevice(const TestLists& test_lists,
                                     const AttentionTensors& like) const {
  DeviceOperands device;
  const layers::AttentionV2 input = {device.Upload(test_lists),
                                     test_lists.sources,
                                     score.size(1),
                                     score.size(2),
                                     device.Upload<float>(source),
                                     device.Upload<float>(target),
                                     device.Upload<float>(score),
                                     device.Upload<float>(mask)};
  std::vector<float*> out;
  for (const at::Tensor& tensor : like) {
    out.push_back(device.Room<float>(tensor));
  }
  Expect(layers::AttendV2(input, {out[0], out[1]}, device.work()));
  Expect(layers::AttendV2Backward(input, {device.Upload<float>(grad), out[1]},
                                  {out[2], out[3], out[4]}, device.work()));
  return device.Download(out, like);
}

template <typename Host>
void ExpectAttention(const TestLists& lists, HeadShape shape, bool masked) {
  const Host host(lists, shape, masked);
  const AttentionTensors expected = host.OnCpu();
  const AttentionTensors actual = host.OnDevice(lists, expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    ExpectClose(actual[i], expected[i],
                lists.name + ", result " + std::to_string(i));
  }
}

TEST(DeviceAttentionTest, IsCloseToTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    ExpectAttention<HostGat>(lists, {2, 3}, /*masked=*/true);
  }
  const TestLists few = RandomLists(9, 12, 6, 1);
  ExpectAttention<HostGat>(few, {1, 33}, /*masked=*/false);
}

TEST(DeviceAttentionTest, OfGatv2IsCloseToTheCpus) {
  for (const TestLists& lists : JoinedLists()) {
    ExpectAttention<HostGatv2>(lists, {2, 3}, /*masked=*/true);
  }
  const TestLists few = RandomLists(9, 12, 6, 1);
  ExpectAttention<HostGatv2>(few, {1, 33}, /*masked=*/false);
}

// Threads of each launch interleave differently.
TEST(DeviceAttentionTest, IsTheSameEachTime) {
  const TestLists lists = JoinedLists().front();
  const HostGatv2 host(lists, {1, 5}, /*masked=*/true);
  const AttentionTensors like = host.OnCpu();
  const AttentionTensors first = host.OnDevice(lists, like);
  const AttentionTensors second = host.OnDevice(lists, like);
  for (size_t i = 0; i < like.size(); ++i) {
    ExpectSame(second[i], first[i], "result " + std::to_string(i));
  }
}

}  // namespace
}  // namespace millrace::testing
