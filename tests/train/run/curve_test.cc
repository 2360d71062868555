// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace millrace {
namespace {

using ::testing::DoubleNear;
using ::testing::FieldsAre;

TEST(CurveTest, KeepsEveryPointUntilThereAreTooMany) {
  Curve curve;
  EXPECT_TRUE(curve.points().empty());
  for (int i = 1; i <= 3; ++i) curve.Add({1.0 * i, 10.0 * i});
  EXPECT_THAT(curve.points(),
              ::testing::ElementsAre(FieldsAre(1, 10), FieldsAre(2, 20),
                                     FieldsAre(3, 30)));
}

// Whatever the number of values, the points are the means of runs of 2^k of
// them, in order, and cover all.
TEST(CurveTest, ThinsOutByMeansOfEqualRuns) {
  Curve curve;
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(std::sin(0.01 * i) + 2);
    curve.Add({1.0 * i, values.back()});
    const std::vector<Curve::Point> points = curve.points();
    ASSERT_LE(points.size(), Curve::kMaxPoints);
    size_t run = 1;
    while ((values.size() + run - 1) / run > Curve::kMaxPoints) run *= 2;
    ASSERT_EQ(points.size(), (values.size() + run - 1) / run) << i;
    if (i % 97 != 0) continue;
    for (size_t p = 0; p < points.size(); ++p) {
      double x = 0, y = 0;
      size_t count = 0;
      for (size_t v = p * run; v < (p + 1) * run && v < values.size(); ++v) {
        x += static_cast<double>(v);
        y += values[v];
        ++count;
      }
      const auto size = static_cast<double>(count);
      ASSERT_THAT(points[p], FieldsAre(DoubleNear(x / size, 1e-9),
                                       DoubleNear(y / size, 1e-9)));
    }
  }
}

}  // namespace
}  // namespace millrace
