// SPDX-License-Identifier: Apache-2.0
// Pearson's chi-square test with exact tails.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::testing {

// The false-alarm rate of each comparison of a distribution. Job seeds are
// fixed, so a test that passes once always passes.
inline constexpr double kAlpha = 1e-6;

// P(X >= x) for X chi-square distributed with `df` degrees of freedom: the
// regularised upper incomplete gamma function, by its series below the mode
// and Lentz's continued fraction above it.
inline double ChiSquareTail(double x, double df) {
  const double a = df / 2;
  x /= 2;
  if (x <= 0) return 1;
  const double scale = std::exp(-x + a * std::log(x) - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-15; ++n) {
      term *= x / n;
      sum += term;
    }
    return 1 - sum * scale;
  }
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < 10000; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return scale * h;
}

// The probability of counts as uneven as these, or more, when an outcome
// falls in cell i with probability weights[i] / sum(weights).
inline double ChiSquareP(const std::vector<int64_t>& counts,
                         const std::vector<double>& weights) {
  double total = 0;
  double weight = 0;
  for (const int64_t count : counts) total += static_cast<double>(count);
  for (const double w : weights) weight += w;
  double x = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * weights[i] / weight;
    const double off = static_cast<double>(counts[i]) - expected;
    x += off * off / expected;
  }
  return ChiSquareTail(x, static_cast<double>(counts.size()) - 1);
}

inline double ChiSquareP(const std::vector<int64_t>& counts) {
  return ChiSquareP(counts, std::vector<double>(counts.size(), 1));
}

}  // namespace millrace::testing
