// SPDX-License-Identifier: Apache-2.0
#include "client/nn/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/random/philox.h"

namespace millrace {
namespace {

TEST(DropoutTest, DropsTheRateAndKeepsTheMean) {
  const at::Tensor dropped =
      Dropout(at::ones({1000, 1001}), 0.3, {.seed = 9, .epoch = 1}, 0);
  const double n = 1000.0 * 1001.0;
  const double zeros = n - dropped.ne(0).sum().item().toDouble();
  // The bound is 5 standard deviations, so the rate of false alarms is 6e-7.
  EXPECT_NEAR(zeros / n, 0.3, 5 * std::sqrt(0.3 * 0.7 / n));
  EXPECT_NEAR(dropped.max().item().toDouble(), 1 / 0.7, 1e-4);
}

TEST(DropoutTest, DependsOnlyOnTheKey) {
  const at::Tensor rows = at::ones({777, 33});
  const DropoutKey key{.seed = 1, .epoch = 2, .batch = 3};
  at::set_num_threads(1);
  const at::Tensor one = Dropout(rows, 0.5, key, 0);
  at::set_num_threads(2);
  EXPECT_TRUE(Dropout(rows, 0.5, key, 0).equal(one));
  EXPECT_FALSE(Dropout(rows, 0.5, key, 1).equal(one));
  EXPECT_FALSE(
      Dropout(rows, 0.5, {.seed = 1, .epoch = 2, .batch = 4}, 0).equal(one));
  EXPECT_FALSE(
      Dropout(rows, 0.5, {.seed = 1, .epoch = 3, .batch = 3}, 0).equal(one));
  EXPECT_FALSE(
      Dropout(rows, 0.5,
              {.seed = 1 + (uint64_t{1} << 32), .epoch = 2, .batch = 3}, 0)
          .equal(one));
}

// The draws, one at a time: 16 bits each, the lower half of a word first.
// A resumed run drops what the run before would have dropped, so they must not
// change from version to version.
at::Tensor DrawnOneByOne(int64_t count, uint32_t threshold,
                         const DropoutKey& key, uint32_t layer) {
  const PhiloxWords layer_key = Philox(
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
      {key.epoch, key.batch, 0x64726f70, layer});
  at::Tensor kept = at::empty({count}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxWords words = Philox({layer_key[0], layer_key[1]},
                                     {static_cast<uint32_t>(i / 8), 0, 0, 0});
    const uint32_t word = words[i % 8 / 2];
    const uint32_t draw = i % 2 == 0 ? word % 65536 : word / 65536;
    kept[i] = draw < threshold ? 0 : 65536.0 / (65536.0 - threshold);
  }
  return kept;
}

TEST(DropoutTest, DrawsAreTheSameInEveryVersion) {
  const DropoutKey key{.seed = 0x123456789abcdef0, .epoch = 5, .batch = 7};
  for (const int64_t count : {1, 7, 8, 9, 16, 1003}) {
    EXPECT_TRUE(Dropout(at::ones({count}), 0.25, key, 3)
                    .equal(DrawnOneByOne(count, 16384, key, 3)))
        << count;
  }
}

TEST(DropoutTest, ScalesTheRowsThatItKeeps) {
  const at::Tensor rows = at::ones({4, 50}) * -3.0;
  const DropoutKey key{.seed = 2};
  EXPECT_TRUE(
      Dropout(rows, 0.5, key, 1)
          .equal(DrawnOneByOne(200, 32768, key, 1).view({4, 50}) * -3.0));
}

// Rates are rounded to multiples of 2^-16.
TEST(DropoutTest, RatesBelowTheSmallestStepDropNothing) {
  const at::Tensor rows = at::ones({1000});
  EXPECT_TRUE(Dropout(rows, 0, {}, 0).is_same(rows));
  EXPECT_TRUE(Dropout(rows, 0.49 / 65536, {}, 0).is_same(rows));
  const at::Tensor smallest = Dropout(rows, 0.51 / 65536, {}, 0);
  EXPECT_TRUE(smallest.equal(DrawnOneByOne(1000, 1, {}, 0)));
  EXPECT_GT(smallest.max().item().toFloat(), 1.0f);
}

TEST(DropoutTest, RatesNextToOneKeepOneElementOf65536) {
  const int64_t count = 1 << 20;
  const at::Tensor dropped =
      Dropout(at::ones({count}), 65535.0 / 65536, {.seed = 4}, 0);
  const double kept = dropped.ne(0).sum().item().toDouble();
  // 16 are expected; the rate of false alarms is below 1e-6.
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 45);
  EXPECT_EQ(dropped.max().item().toDouble(), 65536);
  EXPECT_EQ(dropped.sum().item().toDouble(), 65536 * kept);
  // Rounded to 1, which leaves nothing.
  const at::Tensor none =
      Dropout(at::ones({count}), 1 - 0.4 / 65536, {.seed = 4}, 0);
  EXPECT_EQ(none.ne(0).sum().item().toLong(), 0);
}

}  // namespace
}  // namespace millrace
