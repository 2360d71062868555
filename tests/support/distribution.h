// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/chi_square.h"

namespace millrace::testing {

// The p-value of Pearson's test that the outcomes of `draws` draws follow
// `distribution`. Outcomes expected fewer than 20 times are pooled. Fails if an
// outcome is not in the distribution.
template <typename T>
double DistributionP(const std::map<T, int64_t>& counts,
                     const std::map<T, double>& distribution, double draws) {
  std::vector<int64_t> cells;
  std::vector<double> expected;
  int64_t rare_cell = 0;
  double rare = 0;
  int64_t counted = 0;
  for (const auto& [outcome, p] : distribution) {
    const auto found = counts.find(outcome);
    const int64_t count = found == counts.end() ? 0 : found->second;
    counted += count;
    if (p * draws < 20) {
      rare_cell += count;
      rare += p;
    } else {
      cells.push_back(count);
      expected.push_back(p);
    }
  }
  EXPECT_EQ(static_cast<double>(counted), draws) << "impossible outcomes";
  if (rare * draws >= 20) {
    cells.push_back(rare_cell);
    expected.push_back(rare);
  }
  return ChiSquareP(cells, expected);
}

}  // namespace millrace::testing
