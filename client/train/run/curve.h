// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

// Points of a curve, thinned out so that at most kMaxPoints are kept: each one
// is the mean of a number of successive values that doubles when there are too
// many. Threads: one at a time.
class Curve {
 public:
  static constexpr size_t kMaxPoints = 512;

  struct Point {
    double x = 0;
    double y = 0;
  };

  void Add(Point point);
  // The complete points, followed by one of the values since the last of them.
  std::vector<Point> points() const;

 private:
  struct Sum {
    Point sum;
    int64_t count = 0;
    Point mean() const;
  };

  std::vector<Sum> sums_;  // `stride_` values each, except for the last
  int64_t stride_ = 1;
};

}  // namespace millrace
