// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/float_operations.h"

#include <algorithm>
#include <cfenv>
#include <cmath>

#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

int RoundingMode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// Computes with values of type T and the instruction's rounding. The copies are
// volatile so that nothing is computed before the rounding is set.
template <typename T, typename F>
T ComputeRounded(const Instruction& in, T a, T b, T c, F compute) {
  const int mode = RoundingMode(in.rounding);
  if (mode == FE_TONEAREST) return compute(a, b, c);
  std::fesetround(mode);
  volatile T late_a = a;
  volatile T late_b = b;
  volatile T late_c = c;
  volatile T result = compute(late_a, late_b, late_c);
  std::fesetround(FE_TONEAREST);
  return result;
}

// Computes one float of the given type. Sums and products of floats of 16 bits
// are exact as doubles.
template <typename F>
uint64_t ComputeFloat(const Instruction& in, ValueType type, const Sources& s,
                      F compute) {
  const double a = ToDouble(s.a, type);
  const double b = ToDouble(s.b, type);
  const double c = ToDouble(s.c, type);
  double result = 0;
  if (type.bytes == 4) {
    result =
        ComputeRounded<float>(in, static_cast<float>(a), static_cast<float>(b),
                              static_cast<float>(c), compute);
  } else {
    result = ComputeRounded<double>(in, a, b, c, compute);
  }
  if (in.saturates) {
    result = std::isnan(result) ? 0 : std::clamp(result, 0.0, 1.0);
  }
  return FromDouble(result, type);
}

// Calls `compute` with (type, sources) for the value, or for each half of it.
template <typename F>
uint64_t ForEachFloat(const Instruction& in, const Sources& s, F compute) {
  if (!in.type.is_packed) return compute(in.type, s);
  const ValueType half = HalfOf(in.type);
  const Sources low{s.a & 0xffff, s.b & 0xffff, s.c & 0xffff};
  const Sources high{s.a >> 16 & 0xffff, s.b >> 16 & 0xffff,
                     s.c >> 16 & 0xffff};
  return compute(half, low) | compute(half, high) << 16;
}

// Computes with floats of the instruction's type: compute(a, b, c).
template <typename F>
uint64_t WithFloats(const Instruction& in, const Sources& s, F compute) {
  return ForEachFloat(in, s, [&](ValueType type, const Sources& sources) {
    return ComputeFloat(in, type, sources, compute);
  });
}

uint64_t SignBit(ValueType type) { return uint64_t{1} << (type.bits() - 1); }

// Of a number and NaN the result is the number, unless the instruction says
// otherwise; -0 is less than +0.
uint64_t Extremum(const Instruction& in, const Sources& s, bool is_max) {
  return ForEachFloat(in, s, [&](ValueType type, const Sources& sources) {
    const double a = ToDouble(sources.a, type);
    const double b = ToDouble(sources.b, type);
    if (std::isnan(a) || std::isnan(b)) {
      if (in.propagates_nan) return FromDouble(NAN, type);
      return std::isnan(a) ? sources.b : sources.a;
    }
    const bool is_less =
        a < b || (a == b && std::signbit(a) && !std::signbit(b));
    return is_less == is_max ? sources.b : sources.a;
  });
}

}  // namespace

uint64_t AddFloats(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto b, auto) { return a + b; });
}

uint64_t SubtractFloats(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto b, auto) { return a - b; });
}

uint64_t MultiplyFloats(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto b, auto) { return a * b; });
}

uint64_t DivideFloats(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto b, auto) { return a / b; });
}

uint64_t FusedMultiplyAdd(const Instruction& in, const Sources& s) {
  return WithFloats(in, s,
                    [](auto a, auto b, auto c) { return std::fma(a, b, c); });
}

uint64_t MinOfFloats(const Instruction& in, const Sources& s) {
  return Extremum(in, s, false);
}

uint64_t MaxOfFloats(const Instruction& in, const Sources& s) {
  return Extremum(in, s, true);
}

uint64_t AbsoluteFloat(const Instruction& in, const Sources& s) {
  return ForEachFloat(in, s, [](ValueType type, const Sources& sources) {
    return sources.a & ~SignBit(type);
  });
}

uint64_t NegateFloat(const Instruction& in, const Sources& s) {
  return ForEachFloat(in, s, [](ValueType type, const Sources& sources) {
    return sources.a ^ SignBit(type);
  });
}

uint64_t CopySign(const Instruction& in, const Sources& s) {
  const uint64_t sign = SignBit(in.type);
  return (s.b & ~sign) | (s.a & sign);
}

uint64_t SquareRoot(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto, auto) { return std::sqrt(a); });
}

uint64_t ReciprocalSquareRoot(const Instruction& in, const Sources& s) {
  return FromDouble(1 / std::sqrt(ToDouble(s.a, in.type)), in.type);
}

uint64_t Reciprocal(const Instruction& in, const Sources& s) {
  return WithFloats(in, s, [](auto a, auto, auto) { return 1 / a; });
}

uint64_t PowerOfTwo(const Instruction& in, const Sources& s) {
  return ForEachFloat(in, s, [](ValueType type, const Sources& sources) {
    return FromDouble(std::exp2(ToDouble(sources.a, type)), type);
  });
}

uint64_t LogarithmOfTwo(const Instruction& in, const Sources& s) {
  return FromDouble(std::log2(ToDouble(s.a, in.type)), in.type);
}

uint64_t Sine(const Instruction& in, const Sources& s) {
  return FromDouble(std::sin(ToDouble(s.a, in.type)), in.type);
}

uint64_t Cosine(const Instruction& in, const Sources& s) {
  return FromDouble(std::cos(ToDouble(s.a, in.type)), in.type);
}

uint64_t HyperbolicTangent(const Instruction& in, const Sources& s) {
  return ForEachFloat(in, s, [](ValueType type, const Sources& sources) {
    return FromDouble(std::tanh(ToDouble(sources.a, type)), type);
  });
}

}  // namespace millrace::ptxemu
