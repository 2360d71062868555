// SPDX-License-Identifier: Apache-2.0
#include "client/nn/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

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
}

}  // namespace
}  // namespace millrace
