// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/client/cuda/layers/layer_thread_queue.h"
// The kernels need the words of CUDA C++.
#include "client/cuda/layers/dropout_mask.cuh"
#include "client/cuda/layers/gcn_weights.cuh"
#include "client/cuda/layers/self_loops.cuh"
#include "tests/client/cuda/layers/layer_cases.h"

namespace millrace::testing {
namespace {

constexpr float kUnwritten = -77.0f;

TEST(ListKernelsTest, ReplaceSelfLoopsByOneAtTheEnd) {
  for (const TestLists& lists : OddLists()) {
    std::vector<int32_t> expected_indptr = {0}, expected_index;
    for (int32_t i = 0; i < lists.rows(); ++i) {
      for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
        if (lists.index[e] != i) expected_index.push_back(lists.index[e]);
      }
      expected_index.push_back(i);
      expected_indptr.push_back(static_cast<int32_t>(expected_index.size()));
    }
    std::vector<int32_t> indptr(lists.rows() + 1, -1);
    std::vector<int32_t> index(lists.edges() + lists.rows(), -1);
    expected_index.resize(index.size(), -1);
    LayerThreadQueue queue;
    cuda::layers::LaunchSelfLoops(queue, lists.view(),
                                  {indptr.data(), index.data()});
    EXPECT_EQ(indptr, expected_indptr) << lists.name;
    EXPECT_EQ(index, expected_index) << lists.name;
  }
}

// The nodes of a graph whose first rows have lists.
struct GcnNodes {
  explicit GcnNodes(const TestLists& lists)
      : edge(lists.index.size(), kUnwritten), self(lists.sources, kUnwritten) {}
  cuda::layers::GcnWeights weights() { return {edge.data(), self.data()}; }

  std::vector<float> edge, self;
};

TEST(ListKernelsTest, WeighEdgesOfFullDegrees) {
  for (const TestLists& lists : OddLists()) {
    std::vector<int32_t> degree;
    for (int32_t i = 0; i < lists.sources; ++i) degree.push_back(i * i % 71);
    GcnNodes expected(lists), actual(lists);
    const auto root = [&](int32_t node) {
      return static_cast<float>(1 / std::sqrt(degree[node] + 1.0));
    };
    for (int32_t i = 0; i < lists.sources; ++i) {
      expected.self[i] = static_cast<float>(1 / (degree[i] + 1.0));
    }
    for (int32_t i = 0; i < lists.rows(); ++i) {
      const double picks = lists.indptr[i + 1] - lists.indptr[i];
      for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
        const float own = static_cast<float>(degree[i] / picks) * root(i);
        expected.edge[e] = own * root(lists.index[e]);
      }
    }
    LayerThreadQueue queue;
    cuda::layers::LaunchFullGcnWeights(queue, lists.view(), degree.data(),
                                       lists.sources, actual.weights());
    EXPECT_EQ(actual.edge, expected.edge) << lists.name;
    EXPECT_EQ(actual.self, expected.self) << lists.name;
  }
}

TEST(ListKernelsTest, WeighEdgesOfSampledDegrees) {
  for (const TestLists& lists : OddLists()) {
    GcnNodes expected(lists), actual(lists);
    std::vector<float> root(lists.sources);
    for (int32_t i = 0; i < lists.sources; ++i) {
      double degree = 1;
      if (i < lists.rows()) {
        for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
          degree += lists.index[e] == i ? 0 : 1;
        }
      }
      root[i] = static_cast<float>(1 / std::sqrt(degree));
      expected.self[i] = root[i] * root[i];
    }
    for (int32_t i = 0; i < lists.rows(); ++i) {
      for (int32_t e = lists.indptr[i]; e < lists.indptr[i + 1]; ++e) {
        const int32_t j = lists.index[e];
        expected.edge[e] = i == j ? 0.0f : root[i] * root[j];
      }
    }
    LayerThreadQueue queue;
    cuda::layers::LaunchSampledGcnWeights(queue, lists.view(), lists.sources,
                                          actual.weights());
    EXPECT_EQ(actual.edge, expected.edge) << lists.name;
    EXPECT_EQ(actual.self, expected.self) << lists.name;
  }
}

// Room for a mask, which is aligned for the stores.
struct alignas(16) MaskRoom {
  float factors[100];
};

TEST(ListKernelsTest, DrawMasksFromPhilox) {
  constexpr uint64_t kKey = 0xF00DFACE12345678;
  for (const int64_t threshold : {1, 26214, 32768, 65535, 65536}) {
    const double kept = 65536 - std::min<int64_t>(threshold, 65535);
    for (const int64_t count : {0, 1, 7, 8, 9, 64, 99}) {
      MaskRoom mask;
      std::fill(std::begin(mask.factors), std::end(mask.factors), kUnwritten);
      LayerThreadQueue queue;
      cuda::layers::LaunchDropoutMask(queue, kKey, threshold, count,
                                      mask.factors);
      for (int64_t i = 0; i < 100; ++i) {
        const PhiloxWords words =
            Philox({{0x12345678, 0xF00DFACE}},
                   {{static_cast<uint32_t>(i / 8), 0, 0, 0}});
        const uint32_t number = words[i % 8 / 2] >> (i % 2 * 16) & 0xFFFF;
        const auto factor =
            number < threshold ? 0.0f : static_cast<float>(65536 / kept);
        EXPECT_EQ(mask.factors[i], i < count ? factor : kUnwritten) << i;
      }
    }
  }
}

TEST(ListKernelsTest, MasksDoNotRepeatAfterTheLowWord) {
  cuda::layers::WriteMask task{{{3, 4}}, 32768, 2.0f, 0, nullptr};
  // A thread far into a mask writes before the pointer that it is given.
  constexpr int64_t kBlock = (int64_t{1} << 32) + 5;
  MaskRoom mask;
  task.count = (kBlock + 1) * 8;
  task.mask = reinterpret_cast<float*>(
      reinterpret_cast<uintptr_t>(mask.factors) - kBlock * 8 * sizeof(float));
  task(kBlock, 0);
  const PhiloxWords words = Philox({{3, 4}}, {{5, 1, 0, 0}});
  for (int i = 0; i < 8; ++i) {
    const uint32_t number = words[i / 2] >> (i % 2 * 16) & 0xFFFF;
    EXPECT_EQ(mask.factors[i], number < 32768 ? 0.0f : 2.0f);
  }
}

}  // namespace
}  // namespace millrace::testing
