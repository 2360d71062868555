// SPDX-License-Identifier: Apache-2.0
#include "client/nn/list_reduction.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "client/nn/parameters.h"
#include "tests/nn/neighbor_lists.h"

namespace millrace {
namespace {

using operators::Reduction;
using testing::Ints;

// Lists of random lengths, some of them empty, over 40 sources.
Neighbors RandomLists(int seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> indptr = {0}, index;
  for (int row = 0; row < 150; ++row) {
    const auto length = random() % 4 == 0 ? 0 : random() % 9;
    for (size_t e = 0; e < length; ++e) {
      index.push_back(static_cast<int32_t>(random() % 40));
    }
    indptr.push_back(static_cast<int32_t>(index.size()));
  }
  Neighbors lists{Ints(indptr), Ints(index), {}, {}};
  lists.edge_weight = Initializer(seed).Uniform({lists.index.size(0)}, 1);
  return lists;
}

struct Reduced {
  at::Tensor rows, gradient;
};

template <typename Reduce>
Reduced ResultOf(const at::Tensor& source, Reduce&& reduce) {
  const at::Tensor leaf = source.detach().clone().requires_grad_(true);
  const at::Tensor rows = reduce(leaf);
  rows.mul(Initializer(9).Uniform(rows.sizes(), 1)).sum().backward();
  return {rows.detach(), leaf.grad()};
}

TEST(ListReductionTest, IsWhatAggregateComputes) {
  for (int seed = 1; seed <= 5; ++seed) {
    const Neighbors lists = RandomLists(seed);
    const at::Tensor source = Initializer(seed).Uniform({40, 7}, 2);
    for (const auto& [ours, theirs] :
         {std::pair(Reduction::kSum, Aggregation::kSum),
          std::pair(Reduction::kMean, Aggregation::kMean),
          std::pair(Reduction::kMax, Aggregation::kMax)}) {
      const Reduced got = ResultOf(source, [&, how = ours](const auto& rows) {
        return ReduceNeighbors(how, rows, lists);
      });
      const Reduced want =
          ResultOf(source, [&, how = theirs](const auto& rows) {
            return Aggregate(how, rows, lists);
          });
      EXPECT_TRUE(got.rows.equal(want.rows)) << static_cast<int>(ours);
      EXPECT_TRUE(at::allclose(got.gradient, want.gradient, 1e-5, 1e-6))
          << static_cast<int>(ours);
    }
    const Reduced got = ResultOf(source, [&](const auto& rows) {
      return ReduceNeighbors(Reduction::kWeightedSum, rows, lists);
    });
    const Reduced want = ResultOf(source, [&](const auto& rows) {
      return WeightedSumOfNeighbors(rows, lists);
    });
    EXPECT_TRUE(at::allclose(got.rows, want.rows, 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(got.gradient, want.gradient, 1e-5, 1e-6));
  }
}

TEST(ListReductionTest, EmptyListsAndNoListsGiveZeros) {
  const Neighbors empty{Ints({0, 0, 0}), Ints({}), {}, {}};
  const at::Tensor source = at::ones({3, 2});
  for (const Reduction how :
       {Reduction::kSum, Reduction::kMean, Reduction::kMax}) {
    const Reduced reduced = ResultOf(source, [&](const auto& rows) {
      return ReduceNeighbors(how, rows, empty);
    });
    EXPECT_TRUE(reduced.rows.equal(at::zeros({2, 2})));
    EXPECT_TRUE(reduced.gradient.equal(at::zeros({3, 2})));
  }
}

// Of equal values, the first edge's source gets the gradient.
TEST(ListReductionTest, TheFirstOfEqualValuesIsTheLargest) {
  const Neighbors lists{Ints({0, 3}), Ints({2, 0, 1}), {}, {}};
  const Reduced reduced = ResultOf(at::ones({3, 1}), [&](const auto& rows) {
    return ReduceNeighbors(Reduction::kMax, rows, lists);
  });
  EXPECT_EQ(reduced.gradient[0].item().toDouble(), 0);
  EXPECT_EQ(reduced.gradient[1].item().toDouble(), 0);
  EXPECT_NE(reduced.gradient[2].item().toDouble(), 0);
}

}  // namespace
}  // namespace millrace
