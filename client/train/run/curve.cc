// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/curve.h"

namespace millrace {

Curve::Point Curve::Sum::mean() const {
  const auto values = static_cast<double>(count);
  return {sum.x / values, sum.y / values};
}

void Curve::Add(Point point) {
  if (sums_.empty() || sums_.back().count == stride_) {
    if (sums_.size() == kMaxPoints) {
      for (size_t i = 0; i < kMaxPoints / 2; ++i) {
        const Sum &a = sums_[2 * i], &b = sums_[2 * i + 1];
        sums_[i] = {{a.sum.x + b.sum.x, a.sum.y + b.sum.y}, a.count + b.count};
      }
      sums_.resize(kMaxPoints / 2);
      stride_ *= 2;
    }
    sums_.push_back({});
  }
  Sum& last = sums_.back();
  last.sum.x += point.x;
  last.sum.y += point.y;
  ++last.count;
}

std::vector<Curve::Point> Curve::points() const {
  std::vector<Point> points;
  points.reserve(sums_.size());
  for (const Sum& sum : sums_) points.push_back(sum.mean());
  return points;
}

}  // namespace millrace
