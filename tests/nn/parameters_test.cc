// SPDX-License-Identifier: Apache-2.0
#include "client/nn/parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NamesOf(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& named : tensors) names.push_back(named.name);
  return names;
}

double Largest(const at::Tensor& tensor) {
  return tensor.abs().max().item().toDouble();
}

TEST(ShapeTextTest, ListsTheSizes) {
  EXPECT_EQ(ShapeText({2, 3}), "[2, 3]");
  EXPECT_EQ(ShapeText({7}), "[7]");
  EXPECT_EQ(ShapeText({}), "[]");
}

TEST(ParameterSetTest, StateHasParametersThenBuffersThenAliases) {
  ParameterSet set;
  const at::Tensor b = set.AddBuffer("b", at::zeros({2}));
  const at::Tensor w = set.AddParameter("w", at::ones({2}));
  set.AddAlias("v", w);
  const at::Tensor u = set.AddParameter("u", at::ones({3}));
  EXPECT_THAT(NamesOf(set.State()), ElementsAre("w", "u", "b", "v"));
  EXPECT_THAT(NamesOf(set.parameters()), ElementsAre("w", "u"));
  EXPECT_THAT(NamesOf(set.buffers()), ElementsAre("b"));
  EXPECT_TRUE(w.requires_grad());
  EXPECT_FALSE(b.requires_grad());
  EXPECT_TRUE(set.parameters()[1].tensor.is_same(u));
  EXPECT_TRUE(set.State()[3].tensor.is_same(w));
}

TEST(ParameterSetTest, LoadCopiesIntoTheTensorsOfTheLayers) {
  ParameterSet set;
  const at::Tensor w = set.AddParameter("w", at::ones({2}));
  const at::Tensor n = set.AddBuffer("n", at::zeros({}, at::kLong));
  ASSERT_TRUE(set.Load({{"n", at::full({}, 9, at::kLong)},
                        {"w", at::tensor({3.0f, 4.0f})}})
                  .ok());
  EXPECT_TRUE(w.equal(at::tensor({3.0f, 4.0f})));
  EXPECT_EQ(n.item().toLong(), 9);
  EXPECT_TRUE(w.requires_grad());
}

TEST(ParameterSetTest, ReplacedBuffersAreLoadedInstead) {
  ParameterSet set;
  set.AddBuffer("a", at::zeros({1}));
  const at::Tensor old = set.AddBuffer("b", at::zeros({1}));
  const at::Tensor fresh = at::zeros({1});
  set.ReplaceBuffer(1, fresh);
  ASSERT_TRUE(set.Load({{"a", at::ones({1})}, {"b", at::full({1}, 2.0)}}).ok());
  EXPECT_EQ(fresh.item().toDouble(), 2);
  EXPECT_EQ(old.item().toDouble(), 0);
  EXPECT_EQ(set.buffers()[0].tensor.item().toDouble(), 1);
}

TEST(ParameterSetTest, RefusesOtherNamesAndShapes) {
  ParameterSet set;
  const at::Tensor w = set.AddParameter("w", at::ones({2, 3}));
  set.AddParameter("u", at::ones({1}));
  const NamedTensor good_w = {"w", at::zeros({2, 3})};
  const NamedTensor good_u = {"u", at::zeros({1})};
  EXPECT_EQ(set.Load({good_w, good_u, {"x", at::ones({1})}}),
            absl::InvalidArgumentError("the model has no tensor \"x\""));
  EXPECT_EQ(set.Load({good_w}),
            absl::InvalidArgumentError("tensor \"u\" is missing"));
  EXPECT_EQ(set.Load({{"w", at::ones({3, 2})}, good_u}),
            absl::InvalidArgumentError(
                "tensor \"w\" is [3, 2], but the model's is [2, 3]"));
  // Nothing was copied.
  EXPECT_EQ(w.sum().item().toDouble(), 6);
}

TEST(ParameterSetTest, OnlyBuffersOfSomeStatesMayBeMissing) {
  ParameterSet set;
  set.AddBuffer("always", at::zeros({1}));
  const at::Tensor sometimes =
      set.AddBuffer("sometimes", at::ones({1}), /*in_every_state=*/false);
  EXPECT_TRUE(set.Load({{"always", at::ones({1})}}).ok());
  EXPECT_EQ(sometimes.item().toDouble(), 1);
  EXPECT_EQ(set.Load({{"sometimes", at::ones({1})}}).message(),
            "tensor \"always\" is missing");
  EXPECT_EQ(set.Load({{"always", at::ones({1})}, {"sometimes", at::ones({2})}})
                .message(),
            "tensor \"sometimes\" is [2], but the model's is [1]");
}

TEST(ParameterSetTest, OneOfATensorsNamesIsEnough) {
  ParameterSet set;
  const at::Tensor u = set.AddParameter("u", at::zeros({1}));
  const at::Tensor w = set.AddParameter("w", at::zeros({1}));
  set.AddAlias("v", w);
  for (const char* name : {"w", "v"}) {
    ASSERT_TRUE(
        set.Load({{"u", at::ones({1})}, {name, at::full({1}, 5.0)}}).ok());
    EXPECT_EQ(w.item().toDouble(), 5);
    EXPECT_EQ(u.item().toDouble(), 1);
    ASSERT_TRUE(
        set.Load({{"u", at::ones({1})}, {name, at::full({1}, 7.0)}}).ok());
    EXPECT_EQ(w.item().toDouble(), 7);
  }
  EXPECT_EQ(set.Load({{"w", at::ones({1})}}).message(),
            "tensor \"u\" is missing");
}

TEST(ParameterSetTest, TiedTensorsMustNotDiffer) {
  ParameterSet set;
  const at::Tensor w = set.AddParameter("w", at::zeros({2}));
  set.AddAlias("v", w);
  set.AddAlias("t", w);
  const at::Tensor one = at::ones({2});
  EXPECT_TRUE(set.Load({{"w", one}, {"v", one.clone()}}).ok());
  EXPECT_EQ(set.Load({{"w", one}, {"v", at::tensor({1.0f, 1.0001f})}}),
            absl::InvalidArgumentError("tensors \"w\" and \"v\" differ, but "
                                       "they are one tensor in the model"));
  EXPECT_EQ(set.Load({{"v", one}, {"t", one * 2}}).message(),
            "tensors \"v\" and \"t\" differ, but they are one tensor in the "
            "model");
  EXPECT_EQ(set.Load({{"w", one}, {"t", one * 2}}).message(),
            "tensors \"w\" and \"t\" differ, but they are one tensor in the "
            "model");
  // NaN equals itself here, and so do numbers of other types.
  const at::Tensor nan =
      at::full({2}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  EXPECT_TRUE(set.Load({{"w", nan}, {"v", nan.to(at::kFloat)}}).ok());
}

TEST(InitializerTest, TensorsDependOnSeedAndNumber) {
  const uint64_t seed = 0x100000007;
  Initializer first(seed), again(seed), other(7);
  const at::Tensor a = first.Uniform({9}, 1), b = first.Uniform({9}, 1);
  EXPECT_TRUE(again.Uniform({9}, 1).equal(a));
  EXPECT_TRUE(again.Uniform({9}, 1).equal(b));
  EXPECT_FALSE(a.equal(b));
  EXPECT_FALSE(other.Uniform({9}, 1).equal(a));
  // Shapes do not matter, only places.
  EXPECT_TRUE(
      Initializer(seed).Uniform({3, 5}, 1).flatten().narrow(0, 0, 9).equal(a));
}

// Models that were trained from a seed can be trained again from it, so the
// draws must not change from version to version.
TEST(InitializerTest, DrawsAreTheSameInEveryVersion) {
  Initializer initializer(0x100000007);
  initializer.Uniform({1}, 1);
  const at::Tensor second = initializer.Uniform({10}, 0.5);
  for (uint32_t i = 0; i < 10; ++i) {
    const PhiloxWords words = Philox({7, 1}, {i / 4, 0, 1, 0});
    const double unit = (words[i % 4] >> 8) / double{1 << 24};
    EXPECT_FLOAT_EQ(second[i].item().toFloat(), (2 * unit - 1) * 0.5) << i;
  }
}

// The largest of n uniform draws is within 7 / n of the bound, but for one case
// in a thousand; the seeds are fixed.
TEST(InitializerTest, BoundsAreThoseOfTheLayers) {
  Initializer initializer(3);
  const at::Tensor uniform = initializer.Uniform({4000}, 3);
  EXPECT_NEAR(Largest(uniform), 3, 3 * 7e-3);
  EXPECT_NEAR(uniform.mean().item().toDouble(), 0, 0.2);
  EXPECT_LT(uniform.min().item().toDouble(), -2.9);
  EXPECT_GT(uniform.max().item().toDouble(), 2.9);

  const at::Tensor weight = initializer.LinearWeight(100, 64);
  EXPECT_EQ(weight.sizes(), at::IntArrayRef({100, 64}));
  EXPECT_NEAR(Largest(weight), 1 / 8.0, 1e-3);
  const at::Tensor bias = initializer.LinearBias(5000, 16);
  EXPECT_EQ(bias.sizes(), at::IntArrayRef({5000}));
  EXPECT_NEAR(Largest(bias), 1 / 4.0, 1e-3);
  const at::Tensor glorot = initializer.Glorot(70, 26);
  EXPECT_EQ(glorot.sizes(), at::IntArrayRef({70, 26}));
  EXPECT_NEAR(Largest(glorot), 1 / 4.0, 1e-3);
  const at::Tensor stack = initializer.GlorotStack(3, 26, 70);
  EXPECT_EQ(stack.sizes(), at::IntArrayRef({3, 26, 70}));
  EXPECT_NEAR(Largest(stack), 1 / 4.0, 1e-3);
}

TEST(InitializerTest, ShapesOnlyNeedNoMemory) {
  const at::Tensor huge =
      Initializer::ShapesOnly().LinearWeight(int64_t{1} << 30, 1 << 20);
  EXPECT_EQ(huge.numel(), int64_t{1} << 50);
  EXPECT_TRUE(huge.is_meta());
}

}  // namespace
}  // namespace millrace
